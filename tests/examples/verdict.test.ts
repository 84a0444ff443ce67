import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { islandAddress, wrongAddress } from '../../examples/shop/src/addresses.ts'
import { createTables } from '../../examples/shop/src/tables.ts'
import { runChecks } from '../../examples/shop/src/verdict.ts'

let postgres: Awaited<ReturnType<typeof startPostgres>>
let pool: pg.Pool

const refused = '00000000-0000-4000-8000-000000000003'
const misaddressed = '00000000-0000-4000-8000-000000000004'
const stormbound = '00000000-0000-4000-8000-000000000005'

// Order 1 is delivered, its coupon too, and its invoice was paid in time; order 2 was declined. Order 3: its coupon was
// withdrawn, the carrier took it at the second attempt, and its invoice was not paid. Order 4 had a wrong address.
// Order 5 was for the island: given up in the storm at the third attempt, and shipped at the first one after its replay.
const goodBooks = `
  insert into orders (id, customer, item, address) overriding system value
  values (1, 'ada', 'kite', 'here'), (3, 'ada', 'atlas', 'here'), (4, 'ada', 'atlas', '${wrongAddress}'),
         (5, 'ada', 'atlas', '${islandAddress}');
  insert into coupons values ('kept', 1);
  insert into declined values (2);
  insert into withdrawn_coupons values ('withdrawn');
  insert into invoices values (1, true), (3, null);
  insert into refusals values ('${refused}', 1);
  insert into corrections values (4, 'there', '${misaddressed}');
  insert into stormbound select '${stormbound}', 5, attempt from generate_series(1, 3) as attempt;
  insert into shipments values
    (gen_random_uuid(), 1, 'kite', 'here', 1),
    ('${refused}', 3, 'atlas', 'here', 2),
    ('${misaddressed}', 4, 'atlas', 'there', 1),
    ('${stormbound}', 5, 'atlas', '${islandAddress}', 1);
  insert into emails_sent
  select gen_random_uuid(), id, 'ada', about from orders, unnest(array['order', 'shipment']) as about;
  ${email(1, 'coupon', 'kept')};
  ${email(3, 'reminder')}`

beforeAll(async () => {
  postgres = await startPostgres()
  pool = new pg.Pool({ connectionString: postgres.url, max: 1 })
  // The end of a pool does not wait for its sockets to close, and the server stops right after it.
  pool.on('error', () => {})
})

afterAll(async () => {
  await pool?.end()
  await postgres?.stop()
})

beforeEach(async () => {
  await pool.query(`
    drop schema public cascade; create schema public;
    create table outbox (id uuid); create table outbox_dead (id uuid)`)
  await pool.query(createTables)
  await pool.query(goodBooks)
})

test('good books pass every check', async () => {
  const checks = await runChecks(pool)

  expect(checks.filter(({ wrong }) => wrong > 0)).toEqual([])
  expect(checks.map(({ rows }) => rows)).toEqual([4, 4, 4, 1, 1, 1, 14, 1, 1, 1, 1, 1, 0])
})

const oneShipment = 'every order has exactly one shipment'
const oneAnnouncement = 'every shipment was announced by exactly one e-mail'
const oneConfirmation = 'every order was confirmed by exactly one e-mail'
const oneCoupon = 'every coupon was e-mailed exactly once'
const notDeclined = 'no declined order was shipped or e-mailed'
const notWithdrawn = 'no coupon rolled back to its savepoint was e-mailed'
const notInvented = 'nothing was delivered that was not ordered'
const shippedLater = 'every parcel that was refused was shipped later'
const mended = 'every wrong address was dead, then mended and shipped'
const replayed = 'every parcel the storm held was dead, then replayed'
const oneReminder = 'every invoice not paid in time has one reminder'
const noReminder = 'no invoice paid in time has a reminder'
const empty = 'the outbox is empty, and so are the dead letters'

test.each([
  ['a lost shipment', 'delete from shipments where order_id = 1', [oneShipment, oneAnnouncement]],
  ['a second shipment', shipment(1), [oneShipment, oneAnnouncement]],
  [
    'a lost announcement',
    "delete from emails_sent where order_id = 1 and about = 'shipment'",
    [oneAnnouncement],
  ],
  ['a second announcement', email(1, 'shipment'), [oneAnnouncement]],
  [
    'a lost confirmation',
    "delete from emails_sent where order_id = 3 and about = 'order'",
    [oneConfirmation],
  ],
  ['a second confirmation', email(1, 'order'), [oneConfirmation]],
  ['a lost coupon', "delete from emails_sent where coupon_code = 'kept'", [oneCoupon]],
  ['a second coupon e-mail', email(1, 'coupon', 'kept'), [oneCoupon]],
  ['a shipment of a declined order', shipment(2), [oneAnnouncement, notDeclined, notInvented]],
  ['an e-mail about a declined order', email(2, 'order'), [notDeclined, notInvented]],
  ['an e-mail with a withdrawn coupon', email(3, 'coupon', 'withdrawn'), [notWithdrawn]],
  ['a shipment of an order nobody placed', shipment(99), [oneAnnouncement, notInvented]],
  ['a parcel shipped at the attempt that was refused', 'update shipments set attempt = 1', [shippedLater]],
  [
    'a refused parcel that was not tried again',
    'update refusals set message_id = gen_random_uuid()',
    [shippedLater],
  ],
  ['a wrong address that was never dead', 'delete from corrections', [mended]],
  ['a wrong address that was shipped to', "update shipments set address = 'nowhere'", [mended]],
  [
    'a dead letter replayed as another message',
    'update corrections set message_id = gen_random_uuid()',
    [mended],
  ],
  ['a parcel that the storm held and nobody gave up', 'delete from stormbound where attempt = 3', [replayed]],
  [
    'a parcel shipped at the attempt that the storm refused',
    'update shipments set attempt = 3 where order_id = 5',
    [replayed],
  ],
  [
    'a parcel of the island replayed as another message',
    'update shipments set message_id = gen_random_uuid() where order_id = 5',
    [replayed],
  ],
  ['a lost reminder', "delete from emails_sent where about = 'reminder'", [oneReminder]],
  ['a second reminder', email(3, 'reminder'), [oneReminder]],
  ['a late payment without a reminder', 'insert into invoices values (4, false)', [oneReminder]],
  ['a reminder of what was paid in time', email(1, 'reminder'), [noReminder]],
  ['a message that still waits', 'insert into outbox default values', [empty]],
  ['a dead letter that nobody replayed', 'insert into outbox_dead default values', [empty]],
])('%s fails the checks it concerns, and only those', async (_what, damage, expected) => {
  await pool.query(damage)

  const checks = await runChecks(pool)

  expect(checks.filter(({ wrong }) => wrong === 1).map(({ title }) => title)).toEqual(expected)
  expect(checks.filter(({ wrong }) => wrong > 0)).toHaveLength(expected.length)
})

function email(orderId: number, about: string, couponCode?: string): string {
  const code = couponCode === undefined ? 'null' : `'${couponCode}'`
  return `insert into emails_sent values (gen_random_uuid(), ${orderId}, 'ada', '${about}', ${code})`
}

function shipment(orderId: number): string {
  return `insert into shipments values (gen_random_uuid(), ${orderId}, 'kite', 'here', 1)`
}
