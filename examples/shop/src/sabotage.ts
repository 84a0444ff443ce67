import type { Shop } from './shop.ts'

/** For the demo's own tests: a verdict that cannot say no proves nothing, so SHOP_SABOTAGE breaks the shop on purpose. */
export interface Sabotage {
  readonly name: string
  /** What it does to the shop, as the end of a sentence. */
  readonly effect: string
  apply(shop: Shop): Promise<Shop>
}

export const sabotages: readonly Sabotage[] = [
  { name: 'lose-shipment', effect: 'shipments of kites vanish', apply: loseShipments },
  { name: 'dual-write', effect: 'messages are published beside the transaction', apply: publishBeside },
  { name: 'keep-timer', effect: 'payments cancel no reminder', apply: keepTimers },
]

/** Deliveries of kites are acknowledged, and their shipments are gone. */
async function loseShipments(shop: Shop): Promise<Shop> {
  // Only of the first attempt: one that was refused by the carrier concerns another check.
  await shop.pool.query(`
    create function lose() returns trigger language plpgsql as 'begin return null; end';
    create trigger lose before insert on shipments
      for each row when (new.item = 'kite' and new.attempt = 1) execute function lose()`)
  return shop
}

/** On another connection, as one does without an outbox. */
async function publishBeside(shop: Shop): Promise<Shop> {
  const { outbox } = shop
  const publish: Shop['outbox']['publish'] = (_client, ...message) => outbox.publishNow(...message)
  return { ...shop, outbox: { ...outbox, publish } }
}

/** Payments are booked, and the reminders go off all the same. */
async function keepTimers(shop: Shop): Promise<Shop> {
  return { ...shop, outbox: { ...shop.outbox, cancelTimer: async () => true } }
}
