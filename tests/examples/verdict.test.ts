import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTables } from '../../examples/shop/src/tables.ts'
import { runChecks } from '../../examples/shop/src/verdict.ts'

let postgres: Awaited<ReturnType<typeof startPostgres>>
let pool: pg.Pool

// Order 1 is delivered, its coupon too; order 2 was declined, the coupon of order 3 withdrawn.
const goodBooks = `
  insert into orders (id, customer, item) overriding system value values (1, 'ada', 'kite'), (3, 'ada', 'atlas');
  insert into coupons values ('kept', 1);
  insert into declined values (2);
  insert into withdrawn_coupons values ('withdrawn');
  insert into shipments values (gen_random_uuid(), 1, 'kite'), (gen_random_uuid(), 3, 'atlas');
  insert into emails_sent values
    (gen_random_uuid(), 1, 'ada', null), (gen_random_uuid(), 1, 'ada', 'kept'), (gen_random_uuid(), 3, 'ada', null)`

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
  await pool.query('drop schema public cascade; create schema public; create table outbox ()')
  await pool.query(createTables)
  await pool.query(goodBooks)
})

test('good books pass every check', async () => {
  const checks = await runChecks(pool)

  expect(checks.filter(({ wrong }) => wrong > 0)).toEqual([])
  expect(checks.map(({ rows }) => rows)).toEqual([2, 2, 1, 1, 1, 5, 0])
})

const oneShipment = 'every order has exactly one shipment'
const oneConfirmation = 'every order was confirmed by exactly one e-mail'
const oneCoupon = 'every coupon was e-mailed exactly once'
const notDeclined = 'no declined order was shipped or e-mailed'
const notWithdrawn = 'no coupon rolled back to its savepoint was e-mailed'
const notInvented = 'nothing was delivered that was not ordered'

test.each([
  ['a lost shipment', 'delete from shipments where order_id = 3', [oneShipment]],
  ['a second shipment', "insert into shipments values (gen_random_uuid(), 1, 'kite')", [oneShipment]],
  ['a lost confirmation', 'delete from emails_sent where order_id = 3', [oneConfirmation]],
  ['a second confirmation', email(1, 'null'), [oneConfirmation]],
  ['a lost coupon', "delete from emails_sent where coupon_code = 'kept'", [oneCoupon]],
  ['a second coupon e-mail', email(1, "'kept'"), [oneCoupon]],
  [
    'a shipment of a declined order',
    "insert into shipments values (gen_random_uuid(), 2, 'kite')",
    [notDeclined, notInvented],
  ],
  ['an e-mail about a declined order', email(2, 'null'), [notDeclined, notInvented]],
  ['an e-mail with a withdrawn coupon', email(3, "'withdrawn'"), [notWithdrawn]],
  [
    'a shipment of an order nobody placed',
    "insert into shipments values (gen_random_uuid(), 99, 'kite')",
    [notInvented],
  ],
  ['a message that still waits', 'insert into outbox default values', ['the outbox is empty']],
])('%s fails the checks it concerns, and only those', async (_what, damage, expected) => {
  await pool.query(damage)

  const checks = await runChecks(pool)

  expect(checks.filter(({ wrong }) => wrong === 1).map(({ title }) => title)).toEqual(expected)
  expect(checks.filter(({ wrong }) => wrong > 0)).toHaveLength(expected.length)
})

function email(orderId: number, couponCode: string): string {
  return `insert into emails_sent values (gen_random_uuid(), ${orderId}, 'ada', ${couponCode})`
}
