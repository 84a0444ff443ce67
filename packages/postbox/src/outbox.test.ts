import { describe, expect, test } from 'vitest'
import type { LogEntry, Logger } from './core/log.ts'
import { defineSubscriber } from './define-subscriber.ts'
import { createOutbox } from './outbox.ts'
import { createStore, type StoreParts } from './store.ts'

const tx = { query: async () => [], inTransaction: true }
const own = { query: async () => [], transaction: () => Promise.reject(new Error('was not asked for')) }

/** Resolves when everything that could run without waiting has run, unhandled rejections included. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

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
    // As some ORMs take them: with a `pool` that is none.
    ['the options of an ORM', { pool: { max: 5 }, host: 'db.internal', user: 'app', password: 'hunter2' }],
  ])('refuses %s as database without printing its password', (_title, database) => {
    const message = messageOf(() => createOutbox({ database: database as never }))

    expect(message).toMatch(/expected `database` to be/)
    expect(message).not.toContain('hunter2')
  })

  test.each([
    ['postgres://app:hunter2@db.internal/app', 'a string'],
    [7, 'a number'],
    [null, 'null'],
    [[own], 'a Array'],
  ])('refuses an `orm` that cannot be one without printing it (case %#)', (orm, got) => {
    const message = messageOf(() => createOutbox({ database: own, orm: orm as never }))

    expect(message).toMatch(/^expected `orm` to be a database of Drizzle or Kysely, got /)
    expect(message).toContain(`got ${got}. `)
  })

  test('takes an `orm` without touching it', () => {
    const orm = new Proxy(() => {}, {
      get: () => {
        throw new Error('do not touch')
      },
    })

    expect(() => createOutbox({ database: own, orm: orm as never })).not.toThrow()
  })

  test('refuses a client of another kind by the name of its class', () => {
    class DataSource {
      readonly password = 'hunter2'
    }
    const message = messageOf(() => createOutbox({ database: new DataSource() as never }))

    expect(message).toMatch(/, got a DataSource\. /)
  })

  test.each([
    ['pool', { pool: 'postgres://app:hunter2@db.internal/app' }],
    ['pool', { pool: undefined }],
    ['pool', { pool: { max: 5, password: 'hunter2' }, listen: own }],
    ['listen', { pool: own, listen: { connectionString: 'postgres://app:hunter2@db.internal/app' } }],
    ['listen', { pool: own, listen: null }],
  ])(
    'says that it is `database.%s` that it cannot use, without its password (case %#)',
    (member, database) => {
      const message = messageOf(() => createOutbox({ database: database as never }))

      expect(message).toMatch(new RegExp(`^expected \`database\\.${member}\` to be a pg\\.Pool`))
      expect(message).not.toContain('hunter2')
    },
  )

  test('takes a database to work on and another one to listen on', () => {
    expect(() => createOutbox({ database: { pool: own } })).not.toThrow()
    expect(() => createOutbox({ database: { pool: own, listen: own } })).not.toThrow()
    expect(messageOf(() => createOutbox({ database: { pool: own, lisen: own } as never }))).toMatch(/lisen/)
  })

  test('refuses a name that Postgres would cut short', () => {
    expect(() => createOutbox({ table: 't'.repeat(64) })).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_NAME' }),
    )
  })

  test('gives an outbox that nobody can change', () => {
    expect(Object.isFrozen(createOutbox())).toBe(true)
  })

  test('schemaSql takes checked options only', async () => {
    const outbox = createOutbox()
    const hostile = { autovacuum: { threshold: '1); drop table x' as never } }

    expect(await outbox.schemaSql({ autovacuum: false })).not.toContain('autovacuum')
    await expect(outbox.schemaSql(hostile)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
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
    expect(() => outbox.subscribeBatch('orders', () => {})).toThrow(/already has a subscriber/)
  })

  test('takes subscribers, too, and registers all of a list or none', () => {
    const queues = { orders: {}, emails: {} }
    const outbox = createOutbox({ queues })
    const both = [defineSubscriber(queues, 'emails', () => {}), defineSubscriber(queues, 'orders', () => {})]
    outbox.subscribe('orders', () => {})

    expect(() => outbox.subscribe(both)).toThrow(/"orders".* already has a subscriber/)
    expect(() => outbox.subscribe(both.slice(0, 1))).not.toThrow()
  })
})

describe('deadLetters', () => {
  test('cannot be changed, and are asked of the database that the outbox was given', async () => {
    const { deadLetters } = createOutbox()
    const asked = [
      deadLetters.list(),
      deadLetters.get('0190163d-8694-739b-9aea-966c26f8ad91'),
      deadLetters.count(),
      deadLetters.replay('0190163d-8694-739b-9aea-966c26f8ad91', { by: 'ann' }),
      deadLetters.replayAll({}, { by: 'ann' }),
      deadLetters.replayAll({}, { by: 'ann', dryRun: true }),
      deadLetters.resume('0190163d-8694-739b-9aea-966c26f8ad91', { by: 'ann' }),
      deadLetters.operations(),
      deadLetters.discard({}, { by: 'ann' }),
      deadLetters.discard('0190163d-8694-739b-9aea-966c26f8ad91', { by: 'ann' }),
      deadLetters.purge({ olderThanMs: 0 }),
    ]

    for (const one of asked) await expect(one).rejects.toMatchObject({ code: 'OUTBOX_NO_DATABASE' })
    expect(Object.isFrozen(deadLetters)).toBe(true)
  })

  test('have the methods of what is loaded when they are asked, as the outbox has those of its store', () => {
    const outbox = createOutbox()
    const store = createStore({ ...({} as StoreParts), outbox: {} as never })

    expect(Object.keys(outbox.deadLetters).sort()).toEqual(Object.keys(store.deadLetters).sort())
    expect(outbox).toMatchObject(
      Object.fromEntries(Object.keys(store).map((name) => [name, expect.anything()])),
    )
  })
})

describe('a logger', () => {
  /** An outbox that says, when it starts, that it has no subscribers, and that its client cannot listen. */
  function startWith(logger: Logger) {
    const database = { ...own, query: async () => [{ version: '1000', breaking: 'false' }] }
    return createOutbox({ database, logger }).start()
  }

  test.each<[string, (entry: LogEntry) => unknown]>([
    ['throws', () => expect.fail('logger')],
    ['rejects', async () => expect.fail('logger')],
    ['rejects later', () => settled().then(() => expect.fail('logger'))],
  ])('that %s is survived, and nothing is left unhandled', async (_title, answer) => {
    const entries: LogEntry[] = []
    const unhandled: unknown[] = []
    const note = (reason: unknown): unknown => unhandled.push(reason)
    process.on('unhandledRejection', note)
    const running = await startWith((entry) => {
      entries.push(entry)
      return answer(entry)
    })
    await running.stop()
    await settled()
    await settled()
    process.off('unhandledRejection', note)

    expect(entries).toMatchObject([{ level: 'warn' }, { level: 'info' }])
    expect(unhandled).toEqual([])
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
