{# A mart as a Delta table whose (source, billing period) parts are replaced in one commit, also down to nothing.

   The first run, a run without `periods`, and a run after the columns changed make the whole table, in one commit
   that keeps its history. Any other run replaces exactly its periods. The model itself is written for all periods:
   Spark pushes the condition down to the partitions. #}

{% materialization replace_periods, adapter='spark', supported_languages=['sql'] %}
    {%- set target = api.Relation.create(schema=schema, identifier=model['alias'], type='table') -%}
    {%- set existing = adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
    {%- set whole = existing is none or changed_periods() is none or not same_columns(existing, compiled_code) -%}

    {{ run_hooks(pre_hooks) }}
    {% do mark_writer(model['alias']) %}
    {%- call statement('main') -%}
        {%- if whole -%}
            {{ whole_mart(target, compiled_code) }}
        {%- else -%}
            insert into {{ existing }} replace where {{ in_periods() }}
            select * from (
            {{ compiled_code }}
            ) where {{ in_periods() }}
        {%- endif -%}
    {%- endcall -%}
    {%- if whole -%}
        {% do comment_columns(target) %}
    {%- endif -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target]}) }}
{% endmaterialization %}


{% macro whole_mart(target, compiled_code) %}
    {#- The statement that makes the mart anew: atomic, and older versions stay readable. -#}
    create or replace table {{ target }}
    using delta
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {%- if var('lake', '') %}
    location '{{ quoted(var("lake") ~ "/" ~ model["alias"]) }}'
    {%- endif %}
    comment '{{ quoted(model.description | trim) }}'
    as
    {{ compiled_code }}
{% endmacro %}


{% macro comment_columns(target) %}
    {# What each column says, in one commit. #}
    {%- set comments = [] -%}
    {%- for column in model.columns.values() if column.description -%}
        {%- do comments.append(
            "`" ~ column.name ~ "` comment '" ~ quoted(column.description | trim | replace('\n', ' ')) ~ "'"
        ) -%}
    {%- endfor -%}
    {%- if comments -%}
        {% do run_query("alter table " ~ target ~ " alter column " ~ comments | join(", ")) %}
    {%- endif -%}
{% endmacro %}


{% macro same_columns(existing, compiled_code) %}
    {# Whether the table has exactly the columns that the model gives now: an insert goes by position. #}
    {%- set wanted = [] -%}
    {%- for column in run_query("describe query " ~ compiled_code) -%}
        {%- do wanted.append((column[0], column[1])) -%}
    {%- endfor -%}
    {%- set found = [] -%}
    {%- for column in run_query("describe table " ~ existing) -%}
        {%- do found.append((column[0], column[1])) -%}
    {%- endfor -%}
    {% do return(found[:wanted | length] == wanted and (found[wanted | length:] or [("# ", "")])[0][0][:1] in ("#", "")) %}
{% endmacro %}


{% macro mark_writer(mart) %}
    {# Tells Delta whose write this is, where a lease is held: an older lease's write makes no commit. #}
    {%- if var('lease', none) is not none -%}
        {% do run_query("set spark.databricks.delta.write.txnAppId = " ~ mart) %}
        {% do run_query("set spark.databricks.delta.write.txnVersion = " ~ (var('lease') | int)) %}
    {%- endif -%}
{% endmacro %}


{% macro quoted(text) %}
    {%- do return(text | replace("\\", "\\\\") | replace("'", "\\'")) -%}
{% endmacro %}
