// What a schema consists of, asked of the catalogue in other words than the library's own: the list that no mutation may leave out.

export type Query = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

export interface ColumnObject {
  readonly table: string
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly hasDefault: boolean
  readonly isBytewise: boolean
  readonly isNumbered: boolean
  readonly isKey: boolean
}

export interface IndexObject {
  readonly table: string
  readonly name: string
  readonly isUnique: boolean
  readonly keys: readonly string[]
  readonly predicate: string | null
}

export interface ConstraintObject {
  readonly table: string
  readonly name: string
  readonly definition: string
}

export interface StorageObject {
  readonly table: string
  readonly name: string
  readonly value: string
}

export interface ViewObject {
  readonly name: string
  readonly definition: string
  readonly columns: readonly string[]
}

export interface FunctionObject {
  readonly name: string
  /** As Postgres prints it, without schema. */
  readonly identity: string
  readonly types: string
  readonly arguments: string
  readonly result: string
  /** Makes it. */
  readonly definition: string
}

export interface SchemaObjects {
  readonly tables: readonly string[]
  readonly columns: readonly ColumnObject[]
  readonly indexes: readonly IndexObject[]
  readonly primaryKeys: readonly (ConstraintObject & { readonly keys: readonly string[] })[]
  readonly checks: readonly ConstraintObject[]
  readonly storage: readonly StorageObject[]
  readonly views: readonly ViewObject[]
  readonly functions: readonly FunctionObject[]
}

export async function objectsOf(query: Query, schema: string): Promise<SchemaObjects> {
  const [row] = await query(objectsQuery, [schema])
  return row?.['objects'] as SchemaObjects
}

const objectsQuery = `
  with tables as (
    select oid, relname, reloptions, reltoastrelid from pg_class
     where relnamespace = (select oid from pg_namespace where nspname = $1) and relkind = 'r'
  )
  select jsonb_build_object(
    'tables', (select jsonb_agg(relname order by relname) from tables),
    'columns', (
      select jsonb_agg(jsonb_build_object(
        'table', t.relname, 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'isRequired', a.attnotnull,
        'hasDefault', a.atthasdef, 'isBytewise', a.attcollation = '"C"'::regcollation, 'isNumbered', a.attidentity <> '',
        'isKey', exists (select 1 from pg_index i where i.indrelid = t.oid and i.indisprimary and a.attnum = any (i.indkey))
      ) order by t.relname, a.attnum)
        from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped),
    'indexes', (
      select jsonb_agg(jsonb_build_object(
        'table', t.relname, 'name', x.relname, 'isUnique', i.indisunique, 'predicate', pg_get_expr(i.indpred, t.oid),
        'keys', (select jsonb_agg(pg_get_indexdef(x.oid, place, true) order by place) from generate_series(1, i.indnatts) place)
      ) order by x.relname)
        from tables t join pg_index i on i.indrelid = t.oid and not i.indisprimary join pg_class x on x.oid = i.indexrelid),
    'primaryKeys', (
      select jsonb_agg(jsonb_build_object(
        'table', t.relname, 'name', k.conname, 'definition', pg_get_constraintdef(k.oid),
        'keys', (select jsonb_agg(a.attname order by a.attname) from pg_attribute a where a.attrelid = t.oid and a.attnum = any (k.conkey))
      ) order by k.conname)
        from tables t join pg_constraint k on k.conrelid = t.oid and k.contype = 'p'),
    'checks', (
      select jsonb_agg(jsonb_build_object('table', t.relname, 'name', k.conname, 'definition', pg_get_constraintdef(k.oid)) order by k.conname)
        from tables t join pg_constraint k on k.conrelid = t.oid and k.contype = 'c'),
    'storage', (
      select jsonb_agg(jsonb_build_object('table', relname, 'name', prefix || option_name, 'value', option_value) order by relname, prefix, option_name)
        from (select relname, '' as prefix, o.* from tables, pg_options_to_table(reloptions) o
              union all
              select t.relname, 'toast.', o.* from tables t join pg_class c on c.oid = t.reltoastrelid, pg_options_to_table(c.reloptions) o) s),
    'views', (
      select jsonb_agg(jsonb_build_object(
        'name', c.relname, 'definition', pg_get_viewdef(c.oid), 'columns',
        (select jsonb_agg(a.attname order by a.attnum) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0)) order by c.relname)
        from pg_class c where c.relnamespace = (select oid from pg_namespace where nspname = $1) and c.relkind in ('v', 'm')),
    'functions', (
      select jsonb_agg(jsonb_build_object(
        'name', p.proname, 'identity', replace((pg_identify_object('pg_proc'::regclass, p.oid, 0)).identity, $1 || '.', ''), 'types', oidvectortypes(p.proargtypes), 'arguments', pg_get_function_arguments(p.oid),
        'result', pg_get_function_result(p.oid), 'definition', pg_get_functiondef(p.oid)) order by p.proname, p.oid)
        from pg_proc p where p.pronamespace = (select oid from pg_namespace where nspname = $1))
  ) as objects`

/** Everything that hangs on the schema, whatever it is: `function public.f()`. Without row types, TOAST tables, not-null constraints, the indexes of constraints and the rules of views. */
export async function everythingIn(query: Query, schema: string): Promise<readonly string[]> {
  const rows = await query(
    `with recursive found as (
       select classid, objid, objsubid from pg_depend
        where refclassid = 'pg_namespace'::regclass and refobjid = (select oid from pg_namespace where nspname = $1)
       union
       select d.classid, d.objid, d.objsubid from pg_depend d join found f on d.refclassid = f.classid and d.refobjid = f.objid
     )
     select distinct o.type || ' ' || replace(o.identity, $1 || '.', '') as object
       from found f cross join lateral pg_identify_object(f.classid, f.objid, f.objsubid) o
      where o.identity not like 'pg\\_toast.%'
        and not exists (select 1 from pg_constraint k where f.classid = 'pg_constraint'::regclass and k.oid = f.objid and k.contype = 'n')
        and not exists (select 1 from pg_constraint k where f.classid = 'pg_class'::regclass and k.conindid = f.objid)
        and f.classid <> 'pg_rewrite'::regclass
        and not exists (
          select 1 from pg_type t left join pg_type e on e.typarray = t.oid
           where f.classid = 'pg_type'::regclass and t.oid = f.objid and (t.typrelid <> 0 or e.typrelid <> 0))
      order by 1`,
    [schema],
  )
  return rows.map(({ object }) => String(object))
}

/** All that makes the schema, a line for each, in whichever order things were made. */
export async function pictureOf(query: Query, schema: string): Promise<readonly string[]> {
  const objects = await objectsOf(query, schema)
  const [more] = await query(moreQuery, [schema])
  const lists = Object.entries<unknown>({ ...objects, ...more })
  return lists
    .flatMap(([what, list]) => (list as unknown[]).map((one) => `${what} ${JSON.stringify(one)}`))
    .sort()
}

const moreQuery = `
  select (select jsonb_agg(jsonb_build_array(relname, relkind, relpersistence)) from pg_class where relnamespace = n.oid) as relations,
         (select jsonb_agg(jsonb_build_array(c.relname, a.attname, pg_get_expr(v.adbin, v.adrelid))) from pg_attrdef v
            join pg_attribute a on a.attrelid = v.adrelid and a.attnum = v.adnum
            join pg_class c on c.oid = v.adrelid and c.relnamespace = n.oid) as defaults,
         (select jsonb_agg(jsonb_build_array(c.relname, a.attname, a.attidentity, to_jsonb(s) - 'seqrelid')) from pg_sequence s
            join pg_class c on c.oid = s.seqrelid and c.relnamespace = n.oid
            join pg_depend d on d.objid = s.seqrelid and d.deptype = 'i' and d.refclassid = 'pg_class'::regclass
            join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid) as sequences,
         (select jsonb_agg(jsonb_build_array(pg_get_indexdef(i.indexrelid), i.indisvalid)) from pg_index i
            join pg_class c on c.oid = i.indexrelid and c.relnamespace = n.oid) as definitions,
         (select jsonb_agg(jsonb_build_array(conrelid::regclass::text, case when contype <> 'n' then conname end, pg_get_constraintdef(oid)))
            from pg_constraint where connamespace = n.oid) as constraints,
         (select jsonb_agg(jsonb_build_array(relname, reloptions, relacl)) from pg_class where relnamespace = n.oid and relkind <> 'r') as options,
         (select jsonb_agg(jsonb_build_array(proname, proacl)) from pg_proc where pronamespace = n.oid) as rights
    from pg_namespace n
   where n.nspname = $1`
