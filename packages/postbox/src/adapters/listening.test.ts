import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { Hearing } from './executor.ts'
import { recogniseDatabase } from './recognise.ts'

const statement = { name: 'probe', text: 'select $1', values: [1] }
const rows = [{ a: 1 }]

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A pg pool of one client that notes what it was asked, and fails where told. */
function fakePool(failing: string | null = null) {
  const texts: string[] = []
  const released: unknown[] = []
  const query = async (text: string) => {
    texts.push(text)
    if (text === failing) throw new Error(`failed: ${text}`)
    return { rows }
  }
  const release = (destroy?: unknown): unknown => released.push(destroy)
  const client = Object.assign(new EventEmitter(), { query, release })
  const elsewhere = (): Promise<never> => Promise.reject(new Error('another connection'))
  const pool = { totalCount: 0, query: elsewhere, connect: async () => client }
  return { database: recogniseDatabase(pool)!, client, texts, released }
}

describe('a connection of our own from pg', () => {
  /** A session, what was told of it, and the pool it came from. */
  async function connected() {
    const pool = fakePool()
    const lost: unknown[] = []
    const session = await pool.database.connect!((error) => lost.push(error))
    return { ...pool, session, lost }
  }

  test('runs statements on one client, and is given back once, without a listener on it', async () => {
    const { session, client, texts, released } = await connected()

    expect(await session.run(statement)).toBe(rows)
    session.release()
    session.release()
    session.destroy()
    expect(texts).toEqual(['select $1'])
    expect(released).toEqual([false])
    expect(client.eventNames()).toEqual([])
  })

  test('is closed when it breaks, and says so once, with the cause', async () => {
    const { client, lost, released } = await connected()
    const error = new Error('connection lost')
    client.emit('error', error)
    client.emit('end')

    expect(lost).toEqual([error])
    expect(released).toEqual([true])
  })

  test('says so, too, when it ends without an error', async () => {
    const { client, lost } = await connected()
    client.emit('end')

    expect(lost).toEqual([new Error('the connection was closed')])
  })

  // Unheard, an error of a connection that closes ends the process.
  test('tells nothing once it was destroyed, and what it says while it closes does not end the process', async () => {
    const { session, client, lost, released } = await connected()
    session.destroy()
    client.emit('end')

    expect(() => client.emit('error', new Error('late'))).not.toThrow()
    expect({ lost, released }).toEqual({ lost: [], released: [true] })
  })

  test('tells nothing once it was given back', async () => {
    const { session, client, lost } = await connected()
    session.release()
    client.emit('end')

    expect(lost).toEqual([])
  })
})

/** Notes what a listening connection tells. */
function createHearing() {
  const [notified, lost]: unknown[][] = [[], []]
  const hearing: Hearing = {
    notified: (channel, payload) => notified!.push([channel, payload]),
    lost: (error) => lost!.push(error),
  }
  return { notified, lost, hearing }
}

describe('listening with pg', () => {
  async function listening(failing: string | null = null) {
    const heard = createHearing()
    const pool = fakePool(failing)
    const opened = await pool.database.listen!(['a', 'b "c"'], heard.hearing)
    return { ...pool, ...heard, opened }
  }

  test('hears every channel, whatever its name, and runs statements on the connection that listens', async () => {
    const { opened, client, texts, notified } = await listening()
    client.emit('notification', { channel: 'a', payload: 'orders' })
    client.emit('notification', { channel: 'b "c"' })
    await opened.run(statement)

    expect(texts).toEqual(['listen "a"', 'listen "b ""c"""', 'select $1'])
    expect(notified).toEqual([
      ['a', 'orders'],
      ['b "c"', ''],
    ])
  })

  test('a channel that cannot be listened to fails it, and closes the connection', async () => {
    const { database, released } = fakePool('listen "b"')

    await expect(database.listen!(['a', 'b'], createHearing().hearing)).rejects.toThrow('failed: listen "b"')
    expect(released).toEqual([true])
  })

  test('ends with the listening and the locks given up, and the connection given back', async () => {
    const { opened, client, texts, released } = await listening()
    await opened.end()

    expect(texts.slice(2)).toEqual(['unlisten *', 'select pg_advisory_unlock_all()'])
    expect(released).toEqual([false])
    expect(client.eventNames()).toEqual([])
  })

  // Given back as it is, it would go on listening, or hold its locks.
  test.each(['unlisten *', 'select pg_advisory_unlock_all()'])(
    'ends with the connection closed when %s fails, and does not reject',
    async (failing) => {
      const { opened, released } = await listening(failing)

      await expect(opened.end()).resolves.toBeUndefined()
      expect(released).toEqual([true])
    },
  )

  test('a connection that breaks is lost, once; one that is destroyed is not', async () => {
    const [broken, destroyed] = [await listening(), await listening()]
    broken.client.emit('error', 'broken')
    broken.client.emit('end')
    destroyed.opened.destroy()
    destroyed.client.emit('end')

    expect([broken.lost, broken.released]).toEqual([['broken'], [true]])
    expect([destroyed.lost, destroyed.released]).toEqual([[], [true]])
  })
})

describe('listening with postgres.js', () => {
  interface Asked {
    readonly channel: string
    notify(payload: string): void
    listened(): void
  }

  /** A client that listens, on a connection of its own, as postgres.js does: who asked is kept, and asks again when it is made anew. */
  function fakeSql(
    own: { sql?: object; unlisten?: () => Promise<unknown>; isRefusedAtFirst?: boolean } = {},
  ) {
    const asked: Asked[] = []
    const listen = async (channel: string, notify: Asked['notify'], listened: Asked['listened']) => {
      const one = { channel, notify, listened }
      asked.push(one)
      if (own.isRefusedAtFirst) setImmediate(listened)
      await (own.isRefusedAtFirst ? Promise.reject(new Error('refused')) : settled())
      listened()
      const unlisten = async (): Promise<unknown> => {
        if (asked.includes(one)) asked.splice(asked.indexOf(one), 1)
        return own.unlisten?.()
      }
      return { unlisten }
    }
    const makeAnew = (): void => {
      asked.splice(0, asked.length, ...asked.map((one) => ({ ...one })))
      for (const { listened } of asked) listened()
    }
    const members = { unsafe: () => {}, begin: () => {}, reserve: () => {} }
    const sql = 'sql' in own ? own.sql : { unsafe: async () => rows }
    const client = Object.assign(() => {}, members, { listen: Object.assign(listen, { sql }) })
    return { database: recogniseDatabase(client)!, asked, makeAnew }
  }

  async function listening(fake = fakeSql()) {
    const heard = createHearing()
    return { ...fake, ...heard, opened: await fake.database.listen!(['a', 'b'], heard.hearing) }
  }

  test('hears every channel, and runs statements on the connection that listens', async () => {
    const { opened, asked, notified } = await listening()
    asked[1]!.notify('orders')

    expect(asked.map(({ channel }) => channel)).toEqual(['a', 'b'])
    expect(notified).toEqual([['b', 'orders']])
    expect(await opened.run(statement)).toBe(rows)
  })

  // The client tries again by itself: only when it listens is there something to tell.
  test('a listen that fails is waited for until the client listens after all', async () => {
    const { asked, notified, lost } = await listening(fakeSql({ isRefusedAtFirst: true }))
    asked[0]!.notify('orders')

    expect(notified).toEqual([['a', 'orders']])
    expect(lost).toEqual([])
  })

  test('a connection that was made anew is a lost one, once, and nothing is told after it', async () => {
    const { makeAnew, asked, notified, lost } = await listening()
    makeAnew()
    asked[0]!.notify('orders')

    expect(lost).toEqual([new Error('the listening connection broke and was made anew')])
    expect(notified).toEqual([])
  })

  test('tells nothing once it has ended, and does not reject when that fails', async () => {
    const unlisten = (): Promise<never> => Promise.reject(new Error('closed'))
    const { opened, asked, notified, lost } = await listening(fakeSql({ unlisten }))
    const [first] = asked
    await opened.end()
    first!.notify('orders')
    first!.listened()

    expect(asked).toEqual([])
    expect({ notified, lost }).toEqual({ notified: [], lost: [] })
  })

  test('two that listen with one client both hear, and when one ends the other goes on', async () => {
    const fake = fakeSql()
    const [one, other] = [await listening(fake), await listening(fake)]
    fake.asked[0]!.notify('first')
    await one.opened.end()
    fake.asked[0]!.notify('second')

    expect(one.notified).toEqual([['a', 'first']])
    expect(other.notified).toEqual([
      ['a', 'first'],
      ['a', 'second'],
    ])
    await other.opened.end()
    expect(fake.asked).toEqual([])
  })

  test('what has ended can be begun again', async () => {
    const fake = fakeSql()
    await (await listening(fake)).opened.end()
    const { notified } = await listening(fake)
    fake.asked[0]!.notify('orders')

    expect(notified).toEqual([['a', 'orders']])
  })

  // What it is no longer asked for it would go on listening to, and each loss would add to it.
  test('however often the connection was made anew, each channel is asked for once', async () => {
    const fake = fakeSql()
    for (const _loss of [1, 2, 3]) {
      const { opened, makeAnew } = await listening(fake)
      makeAnew()
      opened.destroy()
    }
    await listening(fake)

    expect(fake.asked.map(({ channel }) => channel)).toEqual(['a', 'b'])
  })

  test('a client that does not show its listening connection cannot, and is asked for nothing any more', async () => {
    const fake = fakeSql({ sql: undefined as never })

    await expect(listening(fake)).rejects.toThrow('does not show its listening connection')
    expect(fake.asked).toEqual([])
  })
})

describe('listening with PGlite', () => {
  test('hears every channel, by its quoted name, until it ends, and does not reject when that fails', async () => {
    const heard = createHearing()
    const stopped: string[] = []
    const members = {
      query: async () => ({ rows }),
      listen: async (channel: string, notify: (payload: string) => void) => {
        notify(channel)
        return () => Promise.reject(stopped.push(channel))
      },
      ...{ exec: () => {}, sql: () => {}, transaction: () => {} },
    }
    const opened = await recogniseDatabase(members)!.listen!(['a', 'b "c"'], heard.hearing)

    expect(heard.notified).toEqual([
      ['a', '"a"'],
      ['b "c"', '"b ""c"""'],
    ])
    expect(await opened.run(statement)).toBe(rows)
    await expect(opened.end()).resolves.toBeUndefined()
    expect(stopped).toEqual(['"a"', '"b ""c"""'])
  })
})
