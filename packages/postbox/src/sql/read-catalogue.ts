import { OutboxError } from '../core/errors.ts'
import type { Catalogue } from '../core/schema-shape.ts'
import type { Names } from './names.ts'
import { foundRoutines, foundView, quoted } from './read-surface.ts'
import type { Statement } from './statement.ts'

/** JSON: see core/schema-shape.ts. */
export interface CatalogueRow {
  readonly catalogue: string
}

/**
 * Reads what Postgres knows of the outbox's tables, view and function, those that are there, in one statement that needs no right but to read
 * the version's table. `version` false leaves that one out: it may be missing (42P01), or columns of it (42703).
 *
 * Identifiers inside expressions come unquoted, and tables with their schema, whatever the session likes: the settings are made for this
 * statement alone.
 */
export function readCatalogue(
  names: Names,
  { version }: { readonly version: boolean },
): Statement<CatalogueRow> {
  const { schema, status, replay, ...tables } = names.plain
  return {
    name: 'read_catalogue',
    text: `
with plainly as materialized (
  select set_config('quote_all_identifiers', 'off', true) as quotes, set_config('search_path', '', true) as path
)
select jsonb_build_object(
         'tables', (${foundTables}),
         'view', (${foundView('$3::text')}),
         'routines', (${foundRoutines('$4::text')}),
         'version', ${version ? `(${appliedVersion(names)})` : 'null'}
       )::text as catalogue
  from plainly
 where plainly.quotes = 'off'
   and plainly.path = ''`,
    values: [schema, JSON.stringify(Object.values(tables)), status, replay],
  }
}

export function catalogueFrom([row]: readonly CatalogueRow[]): Catalogue {
  if (row?.catalogue !== undefined) return JSON.parse(row.catalogue)
  const sentence = 'the client renames the columns of its answers: the catalogue cannot be read'
  throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}

// All columns that a note has, so that a table without one of them fails here.
function appliedVersion(names: Names): string {
  return `
  select coalesce(max(m.version::text::int), 0)
    from (select version, name, breaking from ${names.meta}) as m`
}

// PostgreSQL 18 has not-null constraints that were never checked: they count as none.
const isNotNull = `
  a.attnotnull and not exists (
    select 1
      from pg_constraint as k
     where k.conrelid = a.attrelid
       and k.contype = 'n'
       and k.conkey = array[a.attnum]
       and not k.convalidated)`

const identity = `
  select jsonb_build_object(
           'always', a.attidentity = 'a',
           'sequence', ${quoted('n.nspname')} || '.' || ${quoted('q.relname')},
           'sequenceName', ${quoted('q.relname')},
           'isLogged', q.relpersistence = c.relpersistence,
           'parameters', jsonb_build_array(
             'increment ' || s.seqincrement,
             'minvalue ' || s.seqmin,
             'maxvalue ' || s.seqmax,
             'start ' || s.seqstart,
             'cache ' || s.seqcache,
             case when s.seqcycle then 'cycle' else 'no cycle' end))
    from pg_depend as d
    join pg_sequence as s on s.seqrelid = d.objid
    join pg_class as q on q.oid = s.seqrelid
    join pg_namespace as n on n.oid = q.relnamespace
   where a.attidentity <> ''
     and d.classid = 'pg_class'::regclass
     and d.refclassid = 'pg_class'::regclass
     and d.refobjid = a.attrelid
     and d.refobjsubid = a.attnum
     and d.deptype = 'i'`

const foundColumns = `
  select jsonb_agg(jsonb_build_object(
           'name', a.attname,
           'quoted', ${quoted('a.attname')},
           'type', format_type(a.atttypid, a.atttypmod),
           'collation', case when a.attcollation <> t.typcollation then l.collname end,
           'notNull', ${isNotNull},
           'refusesNull', a.attnotnull,
           'default', case when a.attgenerated = '' then pg_get_expr(v.adbin, v.adrelid) end,
           'generated', a.attgenerated <> '',
           'identity', (${identity})) order by a.attnum)
    from pg_attribute as a
    join pg_type as t on t.oid = a.atttypid
    left join pg_collation as l on l.oid = a.attcollation
    left join pg_attrdef as v on v.adrelid = a.attrelid and v.adnum = a.attnum
   where a.attrelid = c.oid
     and a.attnum > 0
     and not a.attisdropped`

const indexKeys = `
  select jsonb_agg(concat_ws(' ',
           pg_get_indexdef(i.indexrelid, p.place, false),
           case when i.indcollation[p.place - 1] <> a.attcollation then 'collate ' || ${quoted('l.collname')} end,
           case when not o.opcdefault then o.opcname end,
           case i.indoption[p.place - 1] & 3 when 1 then 'desc nulls last' when 2 then 'nulls first' when 3 then 'desc' end)
           order by p.place)
    from generate_series(1, i.indnkeyatts::int) as p(place)
    join pg_opclass as o on o.oid = i.indclass[p.place - 1]
    left join pg_collation as l on l.oid = i.indcollation[p.place - 1]
    left join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = i.indkey[p.place - 1]`

const indexOddities = `
  concat_ws(' ',
    case when m.amname <> 'btree' then 'using ' || m.amname end,
    case when i.indnatts > i.indnkeyatts then 'with columns included' end,
    case when not i.indimmediate then 'deferrable' end,
    case when not (i.indisvalid and i.indisready) then 'invalid' end)`

const readColumns = `
  select jsonb_agg(a.attname order by a.attnum)
    from pg_attribute as a
   where a.attrelid = i.indrelid
     and a.attnum > 0
     and (a.attnum = any (i.indkey)
          or exists (
            select 1
              from pg_depend as d
             where d.classid = 'pg_class'::regclass
               and d.objid = i.indexrelid
               and d.refclassid = 'pg_class'::regclass
               and d.refobjid = i.indrelid
               and d.refobjsubid = a.attnum))`

const foundIndexes = `
  select jsonb_agg(jsonb_build_object(
           'name', ${quoted('n.nspname')} || '.' || ${quoted('x.relname')},
           'unique', i.indisunique,
           'isPrimary', i.indisprimary,
           'constraint', ${quoted('k.conname')},
           'keys', (${indexKeys}),
           'predicate', pg_get_expr(i.indpred, i.indrelid),
           'oddities', ${indexOddities},
           'reads', (${readColumns})) order by x.relname)
    from pg_index as i
    join pg_class as x on x.oid = i.indexrelid
    join pg_am as m on m.oid = x.relam
    left join pg_constraint as k on k.conindid = i.indexrelid and k.conrelid = i.indrelid and k.contype in ('p', 'u', 'x')
   where i.indrelid = c.oid`

const foundChecks = `
  select jsonb_agg(jsonb_build_object(
           'name', ${quoted('k.conname')},
           'predicate', pg_get_expr(k.conbin, k.conrelid),
           'valid', k.convalidated) order by k.conname)
    from pg_constraint as k
   where k.conrelid = c.oid
     and k.contype = 'c'`

// Booleans have many spellings; numbers are compared as numbers.
const storageParameters = `
  select jsonb_object_agg(o.prefix || o.option_name, case
           when o.option_name in ('vacuum_truncate', 'autovacuum_enabled')
           then case when o.option_value::boolean then 'on' else 'off' end
           else o.option_value end)
    from (select '' as prefix, option_name, option_value
            from pg_options_to_table(c.reloptions)
           union all
          select 'toast.', option_name, option_value
            from pg_class as t
           cross join lateral pg_options_to_table(t.reloptions)
           where t.oid = c.reltoastrelid) as o`

const foundTables = `
  select coalesce(jsonb_agg(jsonb_build_object(
           'relation', c.relname,
           'kind', c.relkind,
           'isLogged', c.relpersistence <> 'u',
           'columns', coalesce((${foundColumns}), '[]'),
           'indexes', coalesce((${foundIndexes}), '[]'),
           'checks', coalesce((${foundChecks}), '[]'),
           'storage', coalesce((${storageParameters}), '{}')) order by c.relname), '[]')
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
   where n.nspname = $1::text
     and c.relname in (select jsonb_array_elements_text($2::text::jsonb))`
