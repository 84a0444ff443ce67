import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { openerOf, recogniseOrm } from './recognise-orm.ts'

const statement = Object.freeze({ name: 'probe', text: 'select $1', values: Object.freeze([1]) })
const rows = [{ a: 1 }]
const method = (): void => {}
const broken = new Error('the connection broke')
const mistake = new Error('no stock')

/** As ORMs do: where the connection broke, the rollback throws, too, and hides what the work has thrown. */
async function endingIn(failing: Error | null, work: () => Promise<unknown>): Promise<unknown> {
  const [end] = await Promise.allSettled([work()])
  if (failing !== null) throw failing
  if (end.status === 'rejected') throw end.reason
  return end.value
}

/** A Drizzle database that notes how it was asked to begin, and fails at its end where told. */
function fakeDrizzle({ failing = null as Error | null, client = {} as unknown } = {}) {
  const asked: unknown[] = []
  const shape = { selectDistinctOn: method, query: {} }
  const tx = {
    ...shape,
    rollback: method,
    transaction: method,
    execute: async () => rows,
    session: { client },
  }
  const transaction = async (work: (given: unknown) => Promise<unknown>, options: unknown) => {
    asked.push(options)
    return endingIn(failing, () => work(tx))
  }
  return { asked, tx, db: { ...shape, execute: async () => rows, transaction } }
}

function fakeKysely({ failing = null as Error | null } = {}) {
  const asked: unknown[] = []
  const executeQuery = async () => ({ rows })
  const tx = { isTransaction: true, executeQuery, withoutPlugins: () => tx, transaction: method }
  const execute = (work: (given: unknown) => Promise<unknown>) => endingIn(failing, () => work(tx))
  const setIsolationLevel = (level: string) => {
    asked.push(level)
    return { execute }
  }
  const db = {
    isTransaction: false,
    executeQuery,
    withoutPlugins: () => db,
    transaction: () => ({ setIsolationLevel }),
  }
  return { asked, tx, db }
}

describe('recogniseOrm', () => {
  test.each<[string, typeof fakeDrizzle | typeof fakeKysely, unknown]>([
    ['Drizzle', fakeDrizzle, { isolationLevel: 'read committed' }],
    ['Kysely', fakeKysely, 'read committed'],
  ])(
    '%s opens a transaction, read committed, and gives its own beside our way to use it',
    async (client, fake, isolation) => {
      const { asked, tx, db } = fake()
      const opener = recogniseOrm(db)!

      const given = await opener.transaction(async (executor, handle) => [
        await executor.run(statement),
        handle,
      ])

      expect(opener.client).toBe(client)
      expect(given).toEqual([rows, tx])
      expect(given[1]).toBe(tx)
      expect(asked).toEqual([isolation])
    },
  )

  test.each<[string, typeof fakeDrizzle | typeof fakeKysely]>([
    ['Drizzle', fakeDrizzle],
    ['Kysely', fakeKysely],
  ])('%s: what the work throws comes out, even where the rollback fails as well', async (_, fake) => {
    const opener = recogniseOrm(fake({ failing: broken }).db)!

    await expect(opener.transaction(() => Promise.reject(mistake))).rejects.toBe(mistake)
    await expect(opener.transaction(() => Promise.reject(undefined))).rejects.toBe(undefined)
  })

  test.each<[string, typeof fakeDrizzle | typeof fakeKysely]>([
    ['Drizzle', fakeDrizzle],
    ['Kysely', fakeKysely],
  ])('%s: a commit that fails, fails', async (_, fake) => {
    const opener = recogniseOrm(fake({ failing: broken }).db)!

    await expect(opener.transaction(async () => 1)).rejects.toBe(broken)
  })

  test('Drizzle: a connection of pg that breaks between two statements does not end the process', async () => {
    const client = new EventEmitter()
    const opener = recogniseOrm(fakeDrizzle({ client }).db)!

    await opener.transaction(async () => client.emit('error', broken))
    const leftBehind = client.listenerCount('error')
    const failing = async (): Promise<never> => Promise.reject(mistake)
    for (let times = 0; times < 3; times++) await expect(opener.transaction(failing)).rejects.toBe(mistake)

    expect(leftBehind).toBe(0)
    // While it closes it may still have something to say; once is enough.
    expect(client.listenerCount('error')).toBe(1)
  })

  test.each<[string, object]>([
    ['pg', { totalCount: 0, query: method, connect: method }],
    [
      'postgres.js',
      Object.assign(method, { unsafe: method, typed: method, json: method, begin: method, reserve: method }),
    ],
    ['PGlite', { query: method, exec: method, sql: method, listen: method, transaction: method }],
    ['own', { query: method, transaction: method }],
  ])('%s opens its own', (client, database) => {
    expect(recogniseOrm(database)).toMatchObject({ client })
  })

  test('what was given as `orm` and is none is refused by its kind', () => {
    class DataSource {
      readonly password = 'hunter2'
    }

    expect(openerOf(fakeKysely().db).client).toBe('Kysely')
    expect(() => openerOf(new DataSource())).toThrow(
      expect.objectContaining({
        code: 'OUTBOX_INVALID_OPTION',
        message: expect.stringMatching(
          /^expected `orm` to be a database of Drizzle or Kysely.*takes, got a DataSource\./,
        ),
      }),
    )
  })

  test.each<[string, unknown]>([
    ['a Drizzle transaction', fakeDrizzle().tx],
    ['a Kysely transaction', fakeKysely().tx],
    ['an object', {}],
    ['a text', 'drizzle'],
    ['null', null],
    ['nothing', undefined],
    [
      'one that throws when it is touched',
      new Proxy(
        {},
        {
          get: () => {
            throw broken
          },
        },
      ),
    ],
  ])('%s opens nothing', (_, candidate) => {
    expect(recogniseOrm(candidate)).toBeNull()
  })
})
