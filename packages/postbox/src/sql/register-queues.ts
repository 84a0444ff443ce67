import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface QueueOrders {
  /** Queues that whoever starts has in the order of their keys, and those that it has not. */
  readonly ordered: readonly string[]
  readonly others: readonly string[]
}

/**
 * Writes down which queues are in the order of their keys, and tells which of the others somebody has written down: whoever claims those without regard to
 * their keys breaks the order for everybody.
 */
export function registerQueues(
  names: Names,
  input: QueueOrders,
): Statement<{ readonly name: string }, QueueOrders> {
  const registering = `with registered as (
  insert into ${names.queues} as q (name, message_order)
  select name, 'key'
    from jsonb_array_elements_text($2::text::jsonb) as name
   order by 1
      on conflict (name) do update
     set message_order = 'key'
   where q.message_order <> 'key'
)
`
  const isRegistering = input.ordered.length > 0
  return {
    name: 'register_queues',
    text: `
${isRegistering ? registering : ''}select q.name
  from ${names.queues} as q
 where q.message_order = 'key'
   and q.name in (select jsonb_array_elements_text($1::text::jsonb))`,
    values: [JSON.stringify(input.others), ...(isRegistering ? [JSON.stringify(input.ordered)] : [])],
    input,
  }
}
