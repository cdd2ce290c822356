{# Tests that marts share. One query for each mart: a night pays for every query. #}

{% test is_keyed_by(model, key, always_there=[]) %}
    {# Rows that share their key with another, and rows without a value where one must stand. Null is a value here. #}
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
{% endtest %}

{% test is_one_of(model, column_name, values) %}
    {# Rows with a value that is none of these; null passes. #}
    select {{ column_name }}
    from {{ model }}
    where
        {{ column_name }} not in ({% for value in values %}'{{ value }}'{% if not loop.last %}, {% endif %}{% endfor %})
        and ({{ in_periods() }})
{% endtest %}
