import type { Shop } from './shop.ts'

/**
 * For the demo's own tests: a verdict that cannot say no proves nothing, so SHOP_SABOTAGE breaks the shop on purpose.
 *
 * - `lose-shipment`: deliveries of kites are acknowledged, and their shipments are gone.
 * - `dual-write`: messages are published beside the transaction, on another connection, as one does without an outbox.
 * - `keep-timer`: payments are booked, and the reminders go off all the same.
 */
export async function sabotage(shop: Shop, kind: string | undefined): Promise<Shop> {
  const { pool, outbox } = shop
  if (kind === 'lose-shipment') await pool.query(loseShipment)
  if (kind === 'dual-write') return { ...shop, outbox: dualWrite(outbox) }
  if (kind === 'keep-timer') return { ...shop, outbox: { ...outbox, cancelTimer: async () => true } }
  return shop
}

// Only of the first attempt: one that was refused by the carrier concerns another check.
const loseShipment = `
  create function lose() returns trigger language plpgsql as 'begin return null; end';
  create trigger lose before insert on shipments
    for each row when (new.item = 'kite' and new.attempt = 1) execute function lose()`

function dualWrite(outbox: Shop['outbox']): Shop['outbox'] {
  const publish: Shop['outbox']['publish'] = (_client, ...message) => outbox.publishNow(...message)
  return { ...outbox, publish }
}
