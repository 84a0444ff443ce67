import type { Shop } from './shop.ts'

/**
 * For the demo's own tests: a verdict that cannot say no proves nothing, so SHOP_SABOTAGE breaks the shop on purpose.
 *
 * - `lose-shipment`: deliveries of kites are acknowledged, and their shipments are gone.
 * - `dual-write`: messages are published beside the transaction, on another connection, as one does without an outbox.
 */
export async function sabotage(shop: Shop, kind: string | undefined): Promise<Shop> {
  if (kind === 'lose-shipment') await shop.pool.query(loseShipment)
  if (kind === 'dual-write') return { ...shop, outbox: dualWrite(shop.outbox) }
  return shop
}

const loseShipment = `
  create function lose() returns trigger language plpgsql as 'begin return null; end';
  create trigger lose before insert on shipments for each row when (new.item = 'kite') execute function lose()`

function dualWrite(outbox: Shop['outbox']): Shop['outbox'] {
  const publish: Shop['outbox']['publish'] = (_client, ...message) => outbox.publishNow(...message)
  return { ...outbox, publish }
}
