"""What spark-submit starts: the same commands as the console script."""

from weighbridge.cli import main

main()
