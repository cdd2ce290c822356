"""How many decimals a currency's minor unit has, by ISO 4217."""

from __future__ import annotations

# Every other currency has two.
_DECIMALS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_BY_CODE = {code: decimals for decimals, codes in _DECIMALS.items() for code in codes.split()}


def minor_unit(currency: str | None) -> int:
    """Decimals of a currency's minor unit: 0 for JPY, 2 for USD, 3 for KWD; 2 for one that is not known."""
    return _BY_CODE.get(currency or "", 2)
