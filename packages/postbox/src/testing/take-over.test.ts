import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { signal } from '../../../../tests/support/signals.ts'
import { createOutbox } from '../outbox.ts'
import { constant } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'
import type { TestOutbox } from './test-outbox.ts'

/** A client that refuses everything: whoever is taken over must not touch it. */
const untouchable = {
  query: () => Promise.reject(new Error('the database was touched')),
  transaction: () => Promise.reject(new Error('the database was touched')),
}
const standIn = { anything: true } as never

async function taken(options: Parameters<typeof createTestOutbox>[1] = {}) {
  const app = createOutbox({ database: untouchable, logger: false })
  const test = await createTestOutbox(app, options)
  onTestFinished(test.dispose)
  return { app, test }
}

afterEach(() => void vi.useRealTimers())

describe('an outbox that is taken over', () => {
  test.each(['sync', 'loop'] as const)(
    'publishes, handles, looks and migrates without its database (%s)',
    async (mode) => {
      const { app, test } = await taken({ mode })
      const handler = vi.fn()
      app.subscribe('orders', handler)

      await app.migrate()
      await app.publish(standIn, 'orders', 1)
      await app.publishNow('orders', 2)
      await app.publish(standIn, 'emails', 3)
      await test.drain()

      expect(handler).toHaveBeenCalledTimes(2)
      expect(await app.pending(standIn)).toMatchObject([{ body: 3 }])
      expect(await app.stats()).toMatchObject({ orders: { ready: { count: 0 } } })
      expect(await app.ping()).toBe(true)
      expect((await app.deadLetters.list()).items).toEqual([])
    },
  )

  test('is given back as it was: its database, its subscribers', async () => {
    const { app, test } = await taken()
    app.subscribe('orders', () => {})

    await test.dispose()

    await expect(app.publishNow('orders', 1)).rejects.toThrow('the database was touched')
    // A second subscriber of the queue would be refused, if the one of the test were still there.
    expect(() => app.subscribe('orders', () => {})).not.toThrow()
  })

  test('keeps the subscribers that it had before', async () => {
    const app = createOutbox({ database: untouchable, logger: false })
    const handler = vi.fn()
    app.subscribe('orders', handler)
    for (const body of [1, 2]) {
      const test = await createTestOutbox(app)
      await app.publish(standIn, 'orders', body)
      await test.dispose()
    }
    expect(handler.mock.calls.map(([{ body }]) => body)).toEqual([1, 2])
  })

  test('begins each time with empty tables', async () => {
    const { app, test } = await taken()
    await app.publish(standIn, 'orders', 1)
    await test.dispose()

    const again = await createTestOutbox(app)
    onTestFinished(again.dispose)

    expect(again.published()).toEqual([])
    expect(again.pending()).toEqual([])
  })

  test('is given back once: a test outbox that is disposed again leaves the next one alone', async () => {
    const { app, test } = await taken()
    await test.dispose()
    const next = await createTestOutbox(app)
    onTestFinished(next.dispose)

    await test.dispose()
    await app.publishNow('orders', 1)

    expect(next.published()).toHaveLength(1)
  })

  test('that was started by the application is stopped when it is given back', async () => {
    const { app, test } = await taken({ mode: 'sync' })
    await app.start()
    expect(app.health().ok).toBe(true)

    await test.dispose()

    expect(app.health()).toEqual({ ok: false, reasons: ['it is not running'] })
  })

  test('cannot be taken over twice at once', async () => {
    const { app } = await taken()
    await expect(createTestOutbox(app)).rejects.toMatchObject({
      code: 'OUTBOX_CANNOT_TAKE_OVER',
      message: expect.stringContaining('already'),
    })
  })

  test('cannot be taken over while it starts', async () => {
    let answer = (_: readonly unknown[]): void => {}
    const asked = signal('the database is asked')
    const query = () =>
      new Promise<readonly unknown[]>((resolve) => {
        asked.send()
        answer = resolve
      })
    const app = createOutbox({ database: { ...untouchable, query }, logger: false })
    const starting = app.start()
    await asked.wait()

    await expect(createTestOutbox(app)).rejects.toMatchObject({ code: 'OUTBOX_CANNOT_TAKE_OVER' })
    answer([])
    await expect(starting).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_OUTDATED' })
    const test = await createTestOutbox(app)
    await test.dispose()
  })

  test('cannot be taken over while it runs', async () => {
    const { app, test } = await taken()
    await test.dispose()
    const first = await createTestOutbox(app, { mode: 'loop' })
    onTestFinished(first.dispose)
    await expect(createTestOutbox(app)).rejects.toMatchObject({ code: 'OUTBOX_CANNOT_TAKE_OVER' })
  })

  test.each([
    ['a mode that there is not', { mode: 'async' }],
    ['a time that is none', { now: new Date(Number.NaN) }],
    ['a misspelt option', { moed: 'sync' }],
  ])('%s is refused', async (_, options) => {
    const app = createOutbox({ database: untouchable })
    await expect(createTestOutbox(app, options as never)).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
    })
    await expect(app.publishNow('orders', 1)).rejects.toThrow('the database was touched')
  })

  test.each([
    ['nothing', undefined],
    ['a promise', Promise.resolve()],
    ['a string', 'outbox'],
  ])('must be one: %s is refused', async (_, given) => {
    await expect(createTestOutbox(given as never)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
  })

  test.each([
    ['advance', (box) => box.advance(1)],
    ['drain', (box) => box.drain()],
    ['transaction', (box) => box.transaction(() => {})],
    ['feed', (box) => box.feed('orders', 1)],
  ] satisfies [string, (box: TestOutbox) => Promise<unknown>][])(
    'is no longer moved by a test outbox that was disposed: %s',
    async (_, use) => {
      const { test } = await taken()
      await test.dispose()
      await expect(use(test)).rejects.toMatchObject({
        code: 'OUTBOX_CANNOT_TAKE_OVER',
        message: expect.stringContaining('disposed'),
      })
    },
  )

  test('works under false timers', async () => {
    vi.useFakeTimers({ now: new Date('2030-01-01') })
    const { app, test } = await taken({ mode: 'loop' })
    const attempts: number[] = []
    app.subscribe(
      'orders',
      ({ attempt }) => {
        attempts.push(attempt)
        if (attempt === 1) throw new Error('once')
      },
      { retry: constant({ delayMs: 1_000 }) },
    )

    await app.publish(standIn, 'orders', 1)
    await test.drain()
    await test.advance(1_000)

    expect(attempts).toEqual([1, 2])
    expect(test.now()).toEqual(new Date('2030-01-01T00:00:01Z'))
  })
})

describe('a handle', () => {
  test.each([
    ['a pool', { totalCount: 1, connect() {}, query() {} }, 'OUTBOX_NOT_IN_TRANSACTION'],
    ['an own handle that says no', { query() {}, inTransaction: false }, 'OUTBOX_NOT_IN_TRANSACTION'],
    ['a promise: an await is missing', Promise.resolve({}), 'OUTBOX_UNKNOWN_HANDLE'],
    ['nothing', undefined, 'OUTBOX_UNKNOWN_HANDLE'],
    ['a string', 'orders', 'OUTBOX_UNKNOWN_HANDLE'],
  ])('that a real outbox refuses is refused: %s', async (_, handle, code) => {
    const { app, test } = await taken()
    await expect(app.publish(handle as never, 'orders', 1)).rejects.toMatchObject({ code })
    expect(test.published()).toEqual([])
  })

  test('that only the server could tell of is taken for a transaction, and nothing is sent', async () => {
    const { app, test } = await taken()
    const old = { query: untouchable.query, connect() {}, escapeIdentifier() {} }
    await app.publish(old as never, 'orders', 1)
    expect(test.published('orders')).toHaveLength(1)
  })
})
