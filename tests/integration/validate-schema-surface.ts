// Every way to spoil the view and the function.
import type { FunctionObject, ViewObject } from './validate-schema-objects.ts'
import { each, type InSchema, type Mutation } from './validate-schema-spoiling.ts'

export function ofView({ within }: InSchema, { name, definition, columns }: ViewObject): Mutation[] {
  const view = within(name)
  const other = definition.replace(/WHERE .*/, '').replace(/;\s*$/, '')
  return each(`view ${name}`, `view ${view}`, {
    drop: `drop view ${view}`,
    definition: `create or replace view ${view} as ${other}`,
    'another table': `create or replace view ${view} as ${definition.replaceAll('outbox_delivered', 'outbox_dead').replaceAll('outbox_dead.delivered_at', 'outbox_dead.failed_at')}`,
    columns: `alter view ${view} rename column ${columns[0]} to other`,
    'more columns': `create or replace view ${view} as select *, 1 as more from (${definition.replace(/;\s*$/, '')}) as v`,
    rights: `alter view ${view} set (security_invoker = on)`,
    kind: `drop view ${view}; create materialized view ${view} as ${definition}`,
  })
}

export function ofFunction({ within }: InSchema, made: FunctionObject): Mutation[] {
  const { name, identity, types, definition, result } = made
  const one = `function ${within(name)}(${types})`
  const again = (from: string | RegExp, to: string): string => `drop ${one}; ${definition.replace(from, to)}`
  const returns = `RETURNS ${result}`
  return each(`function ${identity}`, one, {
    drop: `drop ${one}`,
    'argument names': again('event_id uuid', 'id uuid'),
    'argument types': again('p_new_generation bigint', 'p_new_generation integer'),
    'more arguments': again('p_replayed_by text', `p_replayed_by text, more text`),
    'a default': again('p_replayed_by text', `p_replayed_by text default 'nobody'`),
    result: again(returns, 'RETURNS character varying'),
    language: `create or replace ${one.replace(types, made.arguments)} returns ${result} language sql security definer as 'select null::text'`,
    body: definition.replace(/(\$function\$\s)/, '$1-- another\n'),
    rights: `alter ${one} security invoker`,
    settings: `alter ${one} set search_path = public`,
    'no settings': `alter ${one} reset all`,
    volatility: `alter ${one} stable`,
    'parallel safety': `alter ${one} parallel safe`,
    strictness: `alter ${one} strict`,
    public: `grant execute on ${one} to public`,
  })
}
