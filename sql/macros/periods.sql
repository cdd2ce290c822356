{# What a run is about: the (source, billing period) pairs of its var `periods`, or everything where it is null. #}

{% macro changed_periods() %}
    {# The pairs to replace, each checked; none where all are meant. Names of sources and months, nothing else. #}
    {% set periods = var('periods', none) %}
    {% if periods is not none %}
        {% for source_name, billing_period in periods %}
            {% if not modules.re.fullmatch('[a-z0-9][a-z0-9_-]{0,63}', source_name) %}
                {{ exceptions.raise_compiler_error("not the name of a source: " ~ source_name) }}
            {% endif %}
            {% if not modules.re.fullmatch('[0-9]{4}-[0-9]{2}', billing_period) %}
                {{ exceptions.raise_compiler_error("not a billing period, YYYY-MM: " ~ billing_period) }}
            {% endif %}
        {% endfor %}
    {% endif %}
    {% do return(periods) %}
{% endmacro %}

{% macro in_periods() %}
    {#- A condition on `source` and `billing_period`: true for the rows this run is about. -#}
    {%- set periods = changed_periods() -%}
    {%- if periods is none -%}
        true
    {%- elif periods | length == 0 -%}
        false
    {%- else -%}
        {%- for source_name, billing_period in periods -%}
            (source = '{{ source_name }}' and billing_period = '{{ billing_period }}')
            {%- if not loop.last %} or {% endif -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
