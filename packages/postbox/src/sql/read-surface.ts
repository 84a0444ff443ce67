// The parts of the catalogue's statement that are about the view and the function. $1 is the schema.

export function quoted(name: string): string {
  return `'"' || replace(${name}, '"', '""') || '"'`
}

/** Of an object with an owner; `acl` null: it has none of its own. Everybody is not somebody. */
function grants(acl: string, owner: string): string {
  return `
  select coalesce(jsonb_agg(jsonb_build_object(
           'grantee', ${quoted('g.rolname')},
           'privilege', lower(e.privilege_type)) order by g.rolname, e.privilege_type), '[]')
    from aclexplode(${acl}) as e
    join pg_roles as g on g.oid = e.grantee
   where e.grantee <> ${owner}`
}

const viewColumns = `
  select coalesce(jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum), '[]')
    from pg_attribute as a
   where a.attrelid = c.oid
     and a.attnum > 0
     and not a.attisdropped`

const isInvoker = `
  select coalesce(bool_or(o.option_value::boolean), false)
    from pg_options_to_table(c.reloptions) as o
   where o.option_name = 'security_invoker'`

/** Whatever has that name, which is the SQL expression `name`. */
export function foundView(name: string): string {
  return `
  select jsonb_build_object(
           'kind', c.relkind,
           'columns', (${viewColumns}),
           'definition', case c.relkind when 'v' then pg_get_viewdef(c.oid) end,
           'isInvoker', (${isInvoker}),
           'grants', (${grants('c.relacl', 'c.relowner')}))
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
   where n.nspname = $1::text
     and c.relname = ${name}`
}

const traits = `
  jsonb_build_array(
    l.lanname,
    case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
    'parallel ' || case p.proparallel when 'u' then 'unsafe' when 'r' then 'restricted' else 'safe' end,
    case when p.proisstrict then 'strict' else 'called on null' end,
    'security ' || case when p.prosecdef then 'definer' else 'invoker' end)`

const isPublic = `
  exists (
    select 1
      from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as e
     where e.grantee = 0)`

export function foundRoutines(name: string): string {
  return `
  select coalesce(jsonb_agg(jsonb_build_object(
           'argumentTypes', '(' || oidvectortypes(p.proargtypes) || ')',
           'arguments', pg_get_function_arguments(p.oid),
           'result', pg_get_function_result(p.oid),
           'traits', ${traits},
           'settings', coalesce(to_jsonb(p.proconfig), '[]'),
           'body', p.prosrc,
           'isPublic', ${isPublic},
           'grants', (${grants('p.proacl', 'p.proowner')})) order by p.oid), '[]')
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    join pg_language as l on l.oid = p.prolang
   where n.nspname = $1::text
     and p.proname = ${name}`
}
