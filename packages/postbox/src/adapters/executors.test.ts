import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { recogniseDatabase, recogniseHandle } from './recognise.ts'

interface Call {
  readonly text: string
  readonly values: readonly unknown[]
}

const statement = Object.freeze({ name: 'probe', text: 'select $1', values: Object.freeze([1]) })
const rows = [{ a: 1 }]

/** A pg pool of one client that notes what it was asked, and fails where told. */
function fakePool(failing?: string, commands: Readonly<Record<string, string>> = {}) {
  const texts: string[] = []
  const released: unknown[] = []
  const query = async (text: string, values: readonly unknown[]) => {
    texts.push(text)
    if (text === failing) throw new Error(`failed: ${text}`)
    if (Object.isFrozen(values)) throw new TypeError('pg writes into the array of values')
    return { rows, command: commands[text] }
  }
  const release = (destroy?: unknown): void => {
    released.push(destroy)
  }
  const client = Object.assign(new EventEmitter(), { query, release })
  const pool = Object.assign(new EventEmitter(), { totalCount: 0, query, connect: async () => client })
  return { database: recogniseDatabase(pool)!, pool, client, texts, released }
}

describe('a transaction of a database', () => {
  const clientOfPg = fakePool()
  const tx = { query: async () => ({ rows }), unsafe: async () => rows }
  const ownTx = { query: async () => rows }
  type Work = (tx: unknown) => unknown
  const give = (work: Work): unknown => work(tx)
  const method = (): void => {}

  test.each<[string, object, unknown]>([
    ['pg', clientOfPg.pool, clientOfPg.client],
    ['postgres.js', { unsafe: method, begin: (_: string, work: Work) => work(tx), reserve: method }, tx],
    ['PGlite', { query: method, exec: method, sql: method, listen: method, transaction: give }, tx],
    ['an own client', { query: method, transaction: (work: Work) => work(ownTx) }, ownTx],
  ])('is given as %s knows it, beside our way to use it', async (_, database, own) => {
    const given = await recogniseDatabase(database)!.transaction(async (executor, handle) => ({
      rows: await executor.run(statement),
      handle,
    }))

    expect(given.rows).toBe(rows)
    expect(given.handle).toBe(own)
  })
})

describe('the executor of PGlite', () => {
  interface Options {
    readonly serializers?: Readonly<Record<number, (value: unknown) => string>>
  }

  // PGlite's own way makes an array of all bytes, and a text of each: 60 bytes of memory for one, and two seconds for nine million.
  test.each(['the database', 'a transaction', 'a handle'])(
    '%s writes bytes by itself, those of a part of a buffer, too',
    async (which) => {
      const written: unknown[] = []
      const query = async (_: string, values: readonly unknown[], options?: Options) => {
        written.push(...values.map((value) => options?.serializers?.[17]?.(value)))
        return { rows }
      }
      const members = { query, exec: () => {}, sql: () => {}, listen: () => {} }
      const transaction = <T>(work: (tx: object) => Promise<T>): Promise<T> => work({ query })
      const database = recogniseDatabase({ ...members, transaction })!
      const bytes = {
        ...statement,
        values: [new Uint8Array([9, 0, 10, 255, 9]).subarray(1, 4), new Uint8Array(0)],
      }
      if (which === 'the database') await database.run(bytes)
      else if (which === 'a transaction') await database.transaction((tx) => tx.run(bytes))
      else await recogniseHandle({ ...members, rollback: () => {} })!.run(bytes)

      expect(written).toEqual(['\\x000aff', '\\x'])
    },
  )
})

describe('the executor of pg', () => {
  test('gives the rows, and values in an array of its own', async () => {
    const { database, texts } = fakePool()

    expect(await database.run(statement)).toBe(rows)
    expect(texts).toEqual(['select $1'])
  })

  test('a transaction begins in read committed, commits, and gives the client back', async () => {
    const { database, texts, released } = fakePool()

    expect(await database.transaction((tx) => tx.run(statement))).toBe(rows)
    expect(texts).toEqual(['begin isolation level read committed', 'select $1', 'commit'])
    expect(released).toEqual([undefined])
  })

  test('work that fails is rolled back, and its connection given back as it was', async () => {
    const { database, client, texts, released } = fakePool('select $1')

    await expect(database.transaction((tx) => tx.run(statement))).rejects.toThrow('failed: select $1')
    expect(texts.at(-1)).toBe('rollback')
    expect(released).toEqual([undefined])
    expect(client.listenerCount('error')).toBe(0)
  })

  test('where work that fails cannot be rolled back, the client is destroyed and the first error passed on', async () => {
    const { database, released } = fakePool('rollback')
    const work = () => Promise.reject(new Error('of the work'))

    await expect(database.transaction(work)).rejects.toThrow('of the work')
    expect(released).toEqual([true])
  })

  test('a COMMIT that is answered by ROLLBACK is a failure', async () => {
    const { database, released } = fakePool('none', { commit: 'ROLLBACK' })

    await expect(database.transaction((tx) => tx.run(statement))).rejects.toThrow('it was rolled back')
    expect(released).toEqual([true])
  })

  test.each(['begin isolation level read committed', 'commit'])(
    'when %s fails, the client is destroyed and the error passed on',
    async (failing) => {
      const { database, texts, released } = fakePool(failing)

      await expect(database.transaction((tx) => tx.run(statement))).rejects.toThrow(`failed: ${failing}`)
      expect(released).toEqual([true])
      expect(texts.at(-1)).toBe(failing)
    },
  )

  test('a connection that breaks between two statements fails the next one, and not the process', async () => {
    const { database, client, released } = fakePool('select $1')
    const work = database.transaction((tx) => {
      client.emit('error', new Error('connection lost'))
      return tx.run(statement)
    })

    await expect(work).rejects.toThrow('failed: select $1')
    expect(released).toEqual([true])
  })

  test('a transaction leaves no listener on the client it gives back', async () => {
    const { database, client } = fakePool()
    await database.transaction((tx) => tx.run(statement))

    expect(client.listenerCount('error')).toBe(0)
  })

  test.each(['begin isolation level read committed', 'commit'])(
    'when %s fails, what the destroyed client still says while it closes does not end the process',
    async (failing) => {
      const { database, client } = fakePool(failing)
      await Promise.allSettled([database.transaction((tx) => tx.run(statement))])

      expect(() => client.emit('error', new Error('connection lost'))).not.toThrow()
      expect(client.listenerCount('error')).toBe(1)
    },
  )

  test('an idle connection that breaks is heard of, until nobody wants to', () => {
    const { database, pool } = fakePool()
    const heard: unknown[] = []
    const [first, second] = [new Error('first'), new Error('second')]
    const deafen = database.onIdleError?.((error) => heard.push(error))
    pool.emit('error', first)
    deafen?.()

    expect(heard).toEqual([first])
    expect(pool.listenerCount('error')).toBe(0)
    expect(() => pool.emit('error', second)).toThrow(second)
  })

  test('who stops listening leaves the listeners of others alone', () => {
    const { database, pool } = fakePool()
    const heard: unknown[] = []
    const deafen = database.onIdleError?.(() => {})
    database.onIdleError?.((error) => heard.push(error))
    deafen?.()
    pool.emit('error', 'broken')

    expect(heard).toEqual(['broken'])
  })

  test('a pool without a free client fails the transaction', async () => {
    const pool = { totalCount: 0, query: () => {}, connect: () => Promise.reject(new Error('exhausted')) }

    await expect(recogniseDatabase(pool)!.transaction(async () => 1)).rejects.toThrow('exhausted')
  })
})

describe('the executor of postgres.js', () => {
  test('sends text and values through unsafe, and begins in read committed', async () => {
    const calls: unknown[] = []
    const members = {
      unsafe: async (text: string, values: readonly unknown[]) => {
        calls.push({ text, values } satisfies Call)
        return rows
      },
      begin: (options: string, work: (tx: unknown) => unknown) => {
        calls.push(options)
        return work(members)
      },
      reserve: () => {},
    }
    const database = recogniseDatabase(Object.assign(() => {}, members))!

    expect(await database.run(statement)).toBe(rows)
    expect(await database.transaction((tx) => tx.run(statement))).toBe(rows)
    expect(calls).toEqual([
      { text: 'select $1', values: [1] },
      'isolation level read committed',
      { text: 'select $1', values: [1] },
    ])
  })
})

describe('the executor of PGlite', () => {
  test('gives the rows of query, in its transactions too', async () => {
    const members = {
      query: async () => ({ rows }),
      exec: () => {},
      sql: () => {},
      listen: () => {},
      transaction: (work: (tx: unknown) => unknown) => work({ query: async () => ({ rows }) }),
    }
    const database = recogniseDatabase(members)!

    expect(await database.run(statement)).toBe(rows)
    expect(await database.transaction((tx) => tx.run(statement))).toBe(rows)
  })
})

describe('the executor of Drizzle', () => {
  const members = { transaction: () => {}, selectDistinctOn: () => {}, rollback: () => {} }

  test.each<[string, unknown]>([
    ['the rows of pg and PGlite', { rows }],
    ['the array of postgres.js', rows],
  ])('gives %s, for a query that has text and values as Drizzle asks for them', async (_, answer) => {
    const built: unknown[] = []
    const execute = async (query: { getSQL(): { toQuery(): unknown } }): Promise<unknown> => {
      built.push(query.getSQL().toQuery())
      return answer
    }

    expect(await recogniseHandle({ ...members, execute }).run(statement)).toBe(rows)
    expect(built).toEqual([{ sql: 'select $1', params: [1] }])
  })
})

describe('the executor of Kysely', () => {
  test('sends a compiled query past the plugins, and gives its rows', async () => {
    const sent: unknown[] = []
    const plain = {
      executeQuery: async (query: object) => {
        sent.push(query)
        return { rows }
      },
    }
    const executeQuery = (): Promise<never> => Promise.reject(new Error('through the plugins'))
    const tx = { isTransaction: true, executeQuery, withoutPlugins: () => plain }

    expect(await recogniseHandle(tx).run(statement)).toBe(rows)
    expect(sent).toEqual([
      {
        sql: 'select $1',
        parameters: [1],
        query: { kind: 'RawNode', sqlFragments: ['select $1'], parameters: [] },
      },
    ])
  })
})

describe('the executor of an own client', () => {
  test('query is called on its object, with text and values, and gives the rows', async () => {
    const own = {
      calls: [] as Call[],
      inTransaction: true,
      async query(text: string, values: readonly unknown[]) {
        this.calls.push({ text, values })
        return rows
      },
    }

    expect(await recogniseHandle(own).run(statement)).toBe(rows)
    expect(own.calls).toEqual([{ text: 'select $1', values: [1] }])
  })

  test.each([
    [{ rows }, /got `\{"rows":\[\{"a":1\}\]\}` \(object\)/],
    [undefined, /got `undefined`\. /],
    [null, /got `null`\. /],
    [1, /got `1` \(number\)/],
    ['rows', /got `"rows"` \(string\)/],
    [new Set(rows), /got `Set` \(object\)/],
    [{ length: 1, 0: rows[0] }, /\(object\)/],
  ])('rows that are no array are refused (case %#)', async (answer, said) => {
    const query = async (): Promise<unknown> => answer
    const database = recogniseDatabase({
      query,
      transaction: (work: (tx: unknown) => unknown) => work({ query }),
    })!
    const attempts = [
      recogniseHandle({ query, inTransaction: true }).run(statement),
      database.run(statement),
      database.transaction((tx) => tx.run(statement)),
    ]

    for (const attempt of attempts) {
      await expect(attempt).rejects.toMatchObject({
        code: 'OUTBOX_UNKNOWN_HANDLE',
        message: expect.stringMatching(said),
      })
      await expect(attempt).rejects.toThrow(/^expected `query` to give an array of rows, /)
    }
  })

  test('no rows are an array, too', async () => {
    expect(await recogniseHandle({ query: async () => [], inTransaction: true }).run(statement)).toEqual([])
  })

  test('inTransaction is called on its object', () => {
    const own = {
      open: true,
      query: () => {},
      inTransaction(): boolean {
        return this.open
      },
    }

    expect(recogniseHandle(own).transactionState()).toEqual({ inside: true })
  })

  test('a database runs its work in the transaction it gives', async () => {
    const own = {
      query: async () => [],
      transaction: (work: (tx: unknown) => unknown) => work({ query: async () => rows }),
    }

    expect(await recogniseDatabase(own)!.transaction((tx) => tx.run(statement))).toBe(rows)
  })
})
