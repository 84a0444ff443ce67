import { describe, expect, test } from 'vitest'
import { createOutbox } from './outbox.ts'

const tx = { query: async () => [], inTransaction: true }

function messageOf(act: () => unknown): string {
  try {
    act()
    return 'nothing was thrown'
  } catch (error) {
    return (error as Error).message
  }
}

describe('createOutbox', () => {
  test.each([
    ['a connection string', 'postgres://app:hunter2@db.internal/app'],
    ['the options of a pool', { connectionString: 'postgres://app:hunter2@db.internal/app' }],
    ['the options of a client', { host: 'db.internal', user: 'app', password: 'hunter2' }],
  ])('refuses %s as database without printing its password', (_title, database) => {
    const message = messageOf(() => createOutbox({ database: database as never }))

    expect(message).toMatch(/expected `database` to be/)
    expect(message).not.toContain('hunter2')
  })

  test('refuses a name that Postgres would cut short', () => {
    expect(() => createOutbox({ table: 't'.repeat(64) })).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_NAME' }),
    )
  })

  test('gives an outbox that nobody can change', () => {
    expect(Object.isFrozen(createOutbox())).toBe(true)
  })

  test('schemaSql takes checked options only', () => {
    const outbox = createOutbox()

    expect(outbox.schemaSql({ autovacuum: false })).not.toContain('autovacuum')
    expect(() => outbox.schemaSql({ autovacuum: { threshold: '1); drop table x' as never } })).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }),
    )
  })
})

describe('subscribe', () => {
  // U-PUB-26
  test('refuses a second subscriber of a queue, an unknown queue, and what is no handler', () => {
    const outbox = createOutbox({ queues: { orders: {}, emails: {} } })
    outbox.subscribe('orders', () => {})

    expect(() => outbox.subscribe('orders', () => {})).toThrow(
      expect.objectContaining({ code: 'OUTBOX_DUPLICATE_SUBSCRIBER' }),
    )
    expect(() => outbox.subscribe('email' as never, () => {})).toThrow(/did you mean "emails"/)
    expect(() => outbox.subscribe('emails', {} as never)).toThrow(/expected `handler` to be a function/)
  })
})

describe('the bound publishers', () => {
  test('in and within refuse what is no handle, at once', async () => {
    const outbox = createOutbox()

    expect(() => outbox.in({} as never)).toThrow(expect.objectContaining({ code: 'OUTBOX_UNKNOWN_HANDLE' }))
    await expect(outbox.within({} as never, async () => {})).rejects.toMatchObject({
      code: 'OUTBOX_UNKNOWN_HANDLE',
    })
  })

  test('current works inside within, however deep, and nowhere else', async () => {
    const outbox = createOutbox()
    const current = outbox.current
    const deep = async (): Promise<unknown> => {
      await Promise.resolve()
      return current.publish('orders', 1)
    }

    await expect(outbox.within(tx, deep)).resolves.toBeNull()
    await expect(deep()).rejects.toMatchObject({ code: 'OUTBOX_NO_AMBIENT_TRANSACTION' })
  })
})
