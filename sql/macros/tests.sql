{# The test that marts share: one query for each, since a night pays for every query. #}

{% test is_keyed_by(model, key, always_there=[], one_of={}) %}
    {# Rows that share their key with another, rows without a value where one must stand, and key columns with a
       value that is none of those known. Null is a value of a key here. #}
    select
        {{ key | join(", ") }},
        count(*) as how_many
    from {{ model }}
    where {{ in_periods() }}
    group by {{ key | join(", ") }}
    having
        count(*) > 1
        {%- for column in always_there %}
        or count({{ column }}) < count(*)
        {%- endfor %}
        {%- for column, values in one_of.items() %}
        or {{ column }} not in ('{{ values | join("', '") }}')
        {%- endfor %}
{% endtest %}
