import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { Statement } from '../sql/statement.ts'
import { recogniseDatabase } from './recognise.ts'

const rows = [{ a: 1 }]
const kept = (text: string): Statement => ({ name: 'probe', text, keptText: `${text} kept`, values: [1] })
const failed = (code: string): Error => Object.assign(new Error(code), { code })

interface Named {
  readonly name: string
  readonly text: string
}

/** A pg pool of one client that notes what it was asked, names included, and refuses names where told. */
function fakePool({ mode = 'auto', refusal: given = '' } = {}) {
  const refusals = { now: given }
  const sent: (string | Named)[] = []
  const query = async (given: string | (Named & { readonly values: unknown[] })) => {
    if (typeof given === 'string') {
      if (given.includes('plan_cache_mode')) return { rows: [{ mode }] }
      sent.push(given)
      return { rows }
    }
    sent.push({ name: given.name, text: given.text })
    const { now: refusal } = refusals
    if (refusal.startsWith('wrapped ')) throw new Error('failed', { cause: failed(refusal.slice(8)) })
    if (refusal !== '') throw failed(refusal)
    return { rows }
  }
  const client = Object.assign(new EventEmitter(), { query, release: () => {} })
  const pool = { totalCount: 0, query, connect: async () => client }
  const database = recogniseDatabase(pool)!
  const connect = () => database.connect!(() => {})
  const texts = (): readonly string[] =>
    sent.map((one) => (typeof one === 'string' ? one : `${one.text} (named)`))
  const names = (): readonly string[] => sent.flatMap((one) => (typeof one === 'string' ? [] : [one.name]))
  return { database, connect, texts, names, refusals }
}

describe('a statement that repeats', () => {
  test('is kept by name on a session of ours, and nowhere else', async () => {
    const { database, connect, texts } = fakePool()
    const session = await connect()

    expect(await session.run(kept('a'))).toBe(rows)
    await session.run({ name: 'probe', text: 'b', values: [] })
    await database.run(kept('c'))
    await database.transaction((tx) => tx.run(kept('d')))
    const listening = await database.listen!([], { notified: () => {}, lost: () => {} })
    await listening.run(kept('e'))
    expect(texts()).toEqual([
      'a kept (named)',
      'b',
      'c',
      'begin isolation level read committed',
      'd',
      'commit',
      'e',
    ])
  })

  test('has a name that says which text it is, the same on every connection', async () => {
    const [one, other] = [fakePool(), fakePool()]
    for (const { connect } of [one, other]) {
      const session = await connect()
      for (const text of ['from a.outbox', 'from b.outbox', 'from a.outbox']) await session.run(kept(text))
    }

    const [first, second, third] = one.names()
    expect(first).toMatch(/^postbox_probe_[0-9a-f]{16}$/)
    expect(second).not.toBe(first)
    expect(third).toBe(first)
    expect(other.names()).toEqual(one.names())
  })

  test('that is one too many for its connection is sent without a name, whoever kept the others', async () => {
    const { connect, texts } = fakePool()
    const [first, second] = [await connect(), await connect()]
    for (let count = 1; count <= 16; count++) await first.run(kept(`${count}`))
    await second.run(kept('17'))
    await second.run(kept('16'))

    expect(texts().slice(-3)).toEqual(['16 kept (named)', '17', '16 kept (named)'])
  })

  test.each(['force_generic_plan', ''])(
    'is not kept where plans may be made without the values (%j)',
    async (mode) => {
      const { connect, texts } = fakePool({ mode })
      await (await connect()).run(kept('a'))

      expect(texts()).toEqual(['a'])
    },
  )

  test.each(['26000', '42P05', '0A000', 'wrapped 26000'])(
    'whose name is refused (%s) is sent once more without, as are all others of the session',
    async (refusal) => {
      const { connect, texts } = fakePool({ refusal })
      const session = await connect()

      expect(await session.run(kept('a'))).toBe(rows)
      expect(await session.run(kept('b'))).toBe(rows)
      expect(texts()).toEqual(['a kept (named)', 'a', 'b'])
    },
  )

  test('that has failed twice in a row by another code, which may be a pooler’s word for a name, is named no more', async () => {
    const { connect, texts } = fakePool({ refusal: 'XX000' })
    const session = await connect()

    for (let run = 1; run <= 2; run++) await expect(session.run(kept('a'))).rejects.toThrow('XX000')
    expect(await session.run(kept('a'))).toBe(rows)
    expect(texts()).toEqual(['a kept (named)', 'a kept (named)', 'a'])
  })

  test('that fails now and then for another reason keeps its name', async () => {
    const { connect, texts, refusals } = fakePool()
    const session = await connect()

    for (const code of ['40P01', '', '40P01', '']) {
      refusals.now = code
      await session.run(kept('a')).catch(() => {})
    }
    expect(texts()).toEqual(Array.from({ length: 4 }, () => 'a kept (named)'))
  })

  test('that fails for another reason is not sent again', async () => {
    const { connect, texts } = fakePool({ refusal: '40001' })

    await expect((await connect()).run(kept('a'))).rejects.toThrow('40001')
    expect(texts()).toEqual(['a kept (named)'])
  })

  test('that a pooler fails to pass on may have been carried out: it is not sent again, and the pool is given no name any more', async () => {
    const { connect, texts } = fakePool({ refusal: '08P01' })

    await expect((await connect()).run(kept('a'))).rejects.toThrow('08P01')
    await (await connect()).run(kept('a'))
    expect(texts()).toEqual(['a kept (named)', 'a'])
  })
})
