import { goodAddress } from './addresses.ts'
import { queues } from './queues.ts'
import type { Shop } from './shop.ts'

/**
 * Looks at the orders that could not be shipped, corrects their addresses, and replays them: each goes back into its
 * queue as the message that it was, with the same id. Resolves with how many there were.
 */
export async function mendDeadLetters({ pool, outbox, tally }: Shop): Promise<number> {
  const { items } = await outbox.deadLetters.list({ queue: 'orders', reason: 'terminal_error', limit: 1_000 })
  for (const { id, body } of items) {
    // Nobody knows why a message is dead, so its body is `unknown`: it may be the reason.
    const { orderId } = queues.orders.body.parse(body)
    const insert =
      'insert into corrections (order_id, address, message_id) values ($1, $2, $3) on conflict do nothing'
    await pool.query(insert, [orderId, goodAddress, id])
    const { replayed } = await outbox.deadLetters.replay(id, { by: 'demo' })
    if (replayed) tally.deadReplayed += 1
  }
  return items.length
}
