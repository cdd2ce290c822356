{# A part over its whole as DECIMAL(38,10); null where the whole is 0 or either is null.

   Spark's DECIMAL(38,18) / DECIMAL(38,18) silently keeps 6 decimals only: both are cast to a smaller type first. #}
{% macro share(part, whole) -%}
    cast({{ part }} as decimal(28, 10)) / nullif(cast({{ whole }} as decimal(28, 10)), 0)
{%- endmacro %}
