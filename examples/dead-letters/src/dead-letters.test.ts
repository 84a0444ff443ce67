import { readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import type { Outbox } from 'postbox'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { everyDeadLetter, forgetOldOnes, mendWhilePaused, replayMended } from './operator.ts'
import { createShipping, type Order } from './shipping.ts'

let db: PGlite
const carrier = { isDown: true }
const by = 'ann@example.org'

beforeAll(async () => {
  db = await PGlite.create() // takes some seconds
}, 60_000)
afterAll(() => db.close())

/** The same tests: where dead letters lie is nobody's business but the database's. */
describe.each(['table', 'in-place'] as const)('dead letters, %s', (deadLetters) => {
  let outbox: Outbox<{ orders: { in: Order; out: Order } }>
  let alerts: string[]

  beforeEach(async () => {
    alerts = []
    carrier.isDown = true
    outbox = createShipping({ db, deadLetters, carrier, page: (alert) => alerts.push(alert) })
    await outbox.migrate()
    await db.exec('truncate outbox, outbox_dead, outbox_delivered, outbox_operations, outbox_queues')
  })

  const place = (orderId: number, address = '12 Harbour Street') =>
    outbox.publishNow('orders', { orderId, address }, { headers: { type: 'order.placed' } })

  test('each death is told once, with all that an alert needs', async () => {
    const { id } = await place(1, '')
    await outbox.drain()

    const what = `order.placed of shop for orders (${id})`
    const why = 'terminal_error after 1: TerminalError: there is no address'
    expect(alerts).toEqual([`${what}: shipOrder gave up, ${why}`])
  })

  test('a filter finds what died of one fault, and counts it', async () => {
    for (const orderId of [1, 2, 3]) await place(orderId)
    await place(4, '')
    await outbox.drain()
    const filter = { queue: 'orders', reason: 'retry_terminal', search: 'carrierdown' } as const

    const found: unknown[] = []
    for await (const { body, attempts } of everyDeadLetter(outbox.deadLetters, filter))
      found.push({ body, attempts })

    expect(found).toHaveLength(3)
    expect(found[0]).toEqual({ body: { orderId: 3, address: '12 Harbour Street' }, attempts: 1 })
    expect(await outbox.deadLetters.count(filter)).toEqual({ count: 3, atLeast: false })
    expect(await outbox.deadLetters.count()).toEqual({ count: 4, atLeast: false })
  })

  test('a replay keeps the message, begins its attempts anew, and remembers the cycle that ended', async () => {
    const { id } = await place(1)
    await outbox.drain()
    await outbox.deadLetters.replay(id, { by, generation: 1 }) // too early: it dies again
    await outbox.drain()

    const letter = await outbox.deadLetters.get(id)
    expect(letter).toMatchObject({ id, attempts: 1, headers: { type: 'order.placed' }, generation: 1 })
    expect(letter?.failureHistory).toMatchObject({
      dropped: 0,
      cycles: [{ attempts: 1, reason: 'retry_terminal', replayedBy: by, operation: null }],
    })
  })

  test('of two operators one replays, and the other is told', async () => {
    const { id } = await place(1)
    await outbox.drain()

    expect(await outbox.deadLetters.replay(id, { by })).toEqual({ replayed: true, lands: 'anywhere' })
    const second = await outbox.deadLetters.replay(id, { by: 'bob@example.org' })
    // "already_replayed" if it is this very moment.
    expect(second).toEqual({ replayed: false, because: 'not_found' })
  })

  test('a timer that lives again stays dead, and nothing is changed', async () => {
    const order = { orderId: 1, address: '12 Harbour Street' }
    const { id } = (await outbox.publishNow('orders', order, { timerId: 'order 1' })) ?? { id: '' }
    await outbox.drain()
    await outbox.publishNow('orders', order, { timerId: 'order 1', delayMs: 60_000 })

    const answer = await outbox.deadLetters.replay(id, { by })

    expect(answer).toEqual({ replayed: false, because: 'timer_conflict' })
    expect(await outbox.deadLetters.count()).toMatchObject({ count: 1 })
  })

  test('what died of a mended fault is replayed by a filter, delivered, and can be audited', async () => {
    const { id } = await place(1)
    await place(2, '')
    await outbox.drain()
    carrier.isDown = false
    const filter = { queue: 'orders', search: 'CarrierDown' }

    const { operation, ...sums } = await replayMended(outbox.deadLetters, filter, { by, atMost: 10 })
    await outbox.drain()

    expect(sums).toEqual({ dryRun: false, replayed: 1, conflicts: 0, finished: true })
    expect(await outbox.deadLetters.operations()).toMatchObject({
      items: [{ id: operation, kind: 'replay', by, filter, settings: { perSecond: 50 }, changed: 1 }],
    })
    expect(await outbox.delivered.get(id)).toMatchObject({
      failureHistory: { cycles: [{ replayedBy: by, operation }] },
    })
    expect(await outbox.deadLetters.count()).toMatchObject({ count: 1 }) // the one without an address
  })

  test('while a queue is paused nothing of it is tried, and nothing dies; then everything is delivered', async () => {
    await mendWhilePaused(outbox, {
      queue: 'orders',
      by,
      async mend() {
        await place(1) // publishing goes on
        expect(await outbox.drain()).toMatchObject({ acked: 0, dead: 0, isEmpty: true })
        const { orders } = await outbox.stats()
        expect(orders).toMatchObject({ ready: { count: 1 }, paused: { by, at: expect.any(Date) } })
        const second = mendWhilePaused(outbox, { queue: 'orders', by: 'bob@example.org', mend() {} })
        await expect(second).rejects.toThrow('ann@example.org paused it at')
        carrier.isDown = false
      },
    })

    expect(await outbox.drain()).toMatchObject({ acked: 1, dead: 0 })
    expect(alerts).toEqual([])
  })

  test('a replay that would be of more than was expected does not begin', async () => {
    for (const orderId of [1, 2, 3]) await place(orderId)
    await outbox.drain()

    const replay = replayMended(outbox.deadLetters, {}, { by, atMost: 2 })

    await expect(replay).rejects.toThrow('3 match')
    expect(await outbox.deadLetters.count()).toMatchObject({ count: 3 })
  })

  test('a replay that was cancelled is resumed under its id, by whoever goes on', async () => {
    await place(1)
    await outbox.drain()
    const cancelled = await outbox.deadLetters.replayAll({}, { by, signal: AbortSignal.abort() })

    const progress: unknown[] = []
    const resumed = await outbox.deadLetters.resume(cancelled.operation, {
      by: 'bob@example.org',
      onProgress: ({ changed, finished }) => progress.push({ changed, finished }),
    })

    expect(cancelled).toMatchObject({ replayed: 0, finished: false })
    expect(resumed).toEqual({ ...cancelled, replayed: 1, finished: true })
    expect(progress.at(-1)).toEqual({ changed: 1, finished: true })
  })

  test('what nobody wants is discarded by somebody, and what is old is purged', async () => {
    const { id } = await place(1)
    await place(2)
    await outbox.drain()

    expect(await outbox.deadLetters.discard(id, { by })).toMatchObject({ discarded: 1 })
    expect(await forgetOldOnes(outbox.deadLetters)).toBe(0)
    expect(await outbox.deadLetters.purge({ olderThanMs: 0 })).toEqual({ purged: 1 })
    expect((await outbox.deadLetters.operations()).items).toMatchObject([{ kind: 'discard', filter: { id } }])
  })

  test('a replay for code to come waits for it', async () => {
    const { id } = await place(1)
    await outbox.drain()
    carrier.isDown = false
    await outbox.deadLetters.replay(id, { by, generation: 2 })

    expect(await outbox.drain()).toMatchObject({ acked: 0 }) // we are of generation 1
    expect(await outbox.stats()).toMatchObject({ orders: { ready: { count: 1 } } })
  })

  test('from psql it is the same', async () => {
    const { id } = await place(1)
    await outbox.drain()
    const script = readFileSync(new URL('replay.sql', import.meta.url), 'utf8').replace(":'id'", `'${id}'`)

    const [failed, answer] = await db.exec(script)

    expect(failed?.rows).toMatchObject([{ id, failure_reason: 'retry_terminal', attempts: 1 }])
    expect(answer?.rows).toEqual([{ outbox_replay: 'replayed' }])
    expect(await outbox.deadLetters.count()).toMatchObject({ count: 0 })
  })
})
