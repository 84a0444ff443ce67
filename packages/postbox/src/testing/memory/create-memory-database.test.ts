// What the contract suite (tests/conformance) cannot say: it knows no Postgres that could be asked the same.
import { describe, expect, test } from 'vitest'
import { draftOf } from '../../../../../tests/support/settle-bench.ts'
import type { Draft } from '../../core/message.ts'
import { buryDead } from '../../sql/bury-dead.ts'
import { cancelTimer } from '../../sql/cancel-timer.ts'
import { claimMessages, type MessageRow } from '../../sql/claim-messages.ts'
import { deleteAcked } from '../../sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../sql/delete-with-follow-ons.ts'
import { extendLeases } from '../../sql/extend-leases.ts'
import { insertMessage } from '../../sql/insert-message.ts'
import { resolveNames } from '../../sql/names.ts'
import { quarantineDead } from '../../sql/quarantine-dead.ts'
import { replayDeadLetter } from '../../sql/replay-dead-letter.ts'
import { sendWord } from '../../sql/sleep.ts'
import type { Statement } from '../../sql/statement.ts'
import { createMemoryDatabase } from './create-memory-database.ts'
import type { Arrival, MemoryMessage } from './memory-database.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const token = '0190163d-8694-739b-9aea-966c26f8ad91'
const minute = 60_000

function open() {
  const clock = { now: 1_000_000 }
  const arrivals: [Arrival, readonly (string | null)[]][] = []
  const arrived = (messages: readonly MemoryMessage[], arrival: Arrival): void =>
    void arrivals.push([arrival, messages.map(({ key }) => key)])
  const database = createMemoryDatabase({ now: () => clock.now, arrived })
  const insert = (given?: Partial<Draft>): Statement<{ readonly seq: string }> =>
    insertMessage(names, draftOf(given), { wake: 'always', mark: null })
  const publish = (given?: Partial<Draft>): number => Number(database.runNow(insert(given))[0]?.seq)
  const claim = (): readonly MessageRow[] => {
    const queue = { queue: 'orders', room: 100, leaseMs: minute, after: '0', dueFromMs: null, sweep: false }
    const rows = database.runNow(claimMessages(names, { token, queues: [queue] }))
    return rows.filter((row) => row.kind === 'message')
  }
  return { clock, arrivals, database, insert, publish, claim }
}

const fenceOf = ({ seq }: { readonly seq: string }) => ({ seq, token })

// F-19
describe('what comes out', () => {
  test('can be changed without changing what is stored: messages, dead letters, arrivals', async () => {
    const seen: MemoryMessage[] = []
    const database = createMemoryDatabase({
      now: () => 0,
      arrived: (messages) => void seen.push(...messages),
    })
    const statement = insertMessage(
      names,
      draftOf({ body: Buffer.from('before'), headers: { tenant: 'before' } }),
      { wake: 'always', mark: null },
    )
    database.runNow(statement)
    const [row] = database.lease([1], { token, leaseMs: minute })
    const burial = { ...fenceOf(row!), reason: 'rejected', error: null, attempts: 1 }
    const spoil = (message: Pick<MemoryMessage, 'body' | 'headers' | 'failureHistory'>): void => {
      message.body.fill(0)
      expect(() => Object.assign(message.headers ?? {}, { tenant: 'after' })).toThrow(TypeError)
      Object.assign(message.failureHistory ?? {}, { dropped: 99 })
      Object.assign(message, { body: null, headers: null })
    }

    for (const message of [...seen, ...database.messages]) spoil(message)
    await database.run(buryDead(names, [burial]))
    for (const letter of database.deadLetters) spoil(letter)
    const replay = {
      id: row!.id,
      by: 'me',
      generation: null,
      delayMs: 0,
      historyLimit: 2,
      wake: 'always',
    } as const
    database.runNow(replayDeadLetter(names, replay))
    for (const message of [...seen.slice(1), ...database.messages]) spoil(message)

    const [left] = database.messages
    expect([Buffer.from(left!.body).toString(), left!.headers]).toEqual(['before', { tenant: 'before' }])
    expect(left!.failureHistory).toMatchObject({ dropped: 0, cycles: [{ replayedBy: 'me' }] })
  })

  test('is by seq, whatever was committed first', () => {
    const { database, insert, publish } = open()
    const tx = database.begin()
    void tx.run(insert({ key: 'first' }))
    publish({ key: 'second' })
    tx.commit()

    expect(database.messages.map(({ seq, key }) => [seq, key])).toEqual([
      [1, 'first'],
      [2, 'second'],
    ])
  })
})

describe('who waits for arrivals', () => {
  test('is told before a statement on its own returns, and when a transaction commits, by kind, in the order of seq', async () => {
    const { arrivals, database, insert, publish, claim } = open()
    publish({ key: 'alone' })
    const [row] = claim()
    const settled = [{ ...fenceOf(row!), followOns: [draftOf({ key: 'follow-on' })] }]
    const tx = database.begin()
    await tx.run(insert({ key: 'a' }))
    await tx.run(deleteWithFollowOns(names, { settled, wake: 'always' }))
    await tx.run(insert({ key: 'b', timerId: 't' }))
    await tx.run(insert({ key: 'cancelled', timerId: 'c' }))
    await tx.run(cancelTimer(names, { queue: 'orders', timerId: 'c', mark: null }))
    const before = [...arrivals]
    tx.commit()
    const later = database.begin()
    await later.run(insert({ key: 'c' }))
    await later.run(insert({ key: 'replaced', timerId: 't', conflict: 'replace' }))
    later.commit()

    expect(before).toEqual([['publish', ['alone']]])
    expect(arrivals.slice(1)).toEqual([
      ['publish', ['a', 'b']],
      ['follow-on', ['follow-on']],
      ['publish', ['replaced', 'c']],
    ])
  })

  test.each(['moved', 'quarantined'])(
    'is told of what is replayed, from where it was %s, and not of what fails',
    (place) => {
      const { arrivals, database, publish, claim } = open()
      publish({ key: 'k' })
      const [row] = claim()
      const burials = [{ ...fenceOf(row!), reason: 'rejected', error: null, attempts: 1 }]
      database.runNow((place === 'moved' ? buryDead : quarantineDead)(names, burials))
      const replay = {
        id: row!.id,
        by: 'me',
        generation: null,
        delayMs: 0,
        historyLimit: 2,
        wake: 'always',
      } as const
      for (let times = 0; times < 2; times++) database.runNow(replayDeadLetter(names, replay))

      expect(arrivals).toEqual([
        ['publish', ['k']],
        ['replay', ['k']],
      ])
    },
  )

  test('may lock what has come at once: it is not set free by the end of what brought it', async () => {
    const told: string[] = []
    const database = createMemoryDatabase({
      now: () => 0,
      arrived([message]) {
        const tx = database.begin()
        void tx.run(cancelTimer(names, { queue: 'orders', timerId: message?.timerId ?? '', mark: null }))
        told.push(message?.timerId ?? '')
      },
    })
    const insert = (timerId: string) =>
      insertMessage(names, draftOf({ timerId }), { wake: 'always', mark: null })
    database.runNow(insert('alone'))
    await database.transaction((tx) => tx.run(insert('transaction')))

    expect([told, database.lease([1, 2], { token, leaseMs: minute })]).toEqual([['alone', 'transaction'], []])
  })

  test('is told of nothing that was rolled back or kept', async () => {
    const { arrivals, database, insert, publish } = open()
    publish({ timerId: 't' })
    const tx = database.begin()
    await tx.run(insert())
    tx.rollback()
    publish({ timerId: 't' })

    expect(arrivals).toHaveLength(1)
  })
})

describe('a transaction that has ended', () => {
  test.each(['commit', 'rollback'] as const)(
    'by %s runs nothing, commits nothing, and can be rolled back',
    async (how) => {
      const { database, insert } = open()
      const tx = database.begin()
      await tx.run(insert())
      const before = tx.isOpen
      tx[how]()

      expect([before, tx.isOpen]).toEqual([true, false])
      await expect(tx.run(insert())).rejects.toThrow('this transaction has ended')
      expect(() => tx.commit()).toThrow('this transaction has ended')
      tx.rollback()
      expect(database.messages).toHaveLength(how === 'commit' ? 1 : 0)
    },
  )

  test('while a statement of it waited runs nothing more', async () => {
    const { database, insert } = open()
    const [first, second] = [database.begin(), database.begin()]
    await first.run(insert({ timerId: 't' }))
    const waiting = second.run(insert({ timerId: 't' }))
    second.rollback()
    first.rollback()

    await expect(waiting).rejects.toThrow('this transaction has ended')
    expect(database.messages).toEqual([])
  })
})

test('a transaction is open until it ends, even when a statement of it has failed', async () => {
  const { database, insert } = open()
  const tx = database.begin()
  await expect(tx.run({ name: 'unknown', text: '', values: [] })).rejects.toThrow()

  expect(tx.isOpen).toBe(true)
  await expect(tx.run(insert())).rejects.toMatchObject({ code: '25P02' })
  tx.commit()
  expect([tx.isOpen, database.messages]).toEqual([false, []])
})

// Postgres would wait for as long as the client does.
test('a settlement of a row that an open transaction has locked fails at once, as after a lock_timeout', async () => {
  const { database, publish, claim } = open()
  publish()
  const fences = claim().map(fenceOf)
  const tx = database.begin()
  await tx.run(extendLeases(names, [{ ...fences[0]!, leaseMs: 1 }]))
  const burials = [{ ...fences[0]!, reason: 'rejected', error: null, attempts: 1 }]

  for (const statement of [
    deleteAcked(names, fences),
    buryDead(names, burials),
    quarantineDead(names, burials),
  ])
    await expect(database.run(statement)).rejects.toMatchObject({ code: '55P03' })
  tx.rollback()
  expect(await database.run(deleteAcked(names, fences))).toEqual([{ seq: '1' }])
})

test('what would have to wait fails when it is run at once, and writes nothing', async () => {
  const { database, insert, publish } = open()
  const tx = database.begin()
  await tx.run(insert({ timerId: 't' }))

  expect(() => database.runNow(insert({ timerId: 't' }))).toThrow(expect.objectContaining({ code: '55P03' }))
  expect(database.messages).toEqual([])
  tx.rollback()
  expect(publish({ timerId: 't' })).toBeGreaterThan(1)
})

describe('leasing by seq', () => {
  test('takes a message whenever it is due, and gives what a claim would give', () => {
    const { database, publish, claim } = open()
    publish({
      key: 'k',
      headers: { a: 'b' },
      generation: 7,
      timerId: 't',
      schedule: { kind: 'after', delayMs: minute },
    })
    const claimed = claim()
    const [row] = database.lease([1], { token, leaseMs: 5 * minute })
    const [left] = database.messages

    expect(claimed).toEqual([])
    expect(row).toMatchObject({
      kind: 'message',
      seq: '1',
      key: 'k',
      timer: 't',
      deliveries: '1',
      generation: '7',
    })
    expect(left).toMatchObject({
      leaseToken: token,
      leasedUntil: 1_000_000 + 5 * minute,
      timerId: null,
      deliveries: 1,
    })
  })

  test('leaves what is held, dead, locked, not committed or not there', async () => {
    const { clock, database, insert, publish } = open()
    const [held, dead, locked] = [publish(), publish(), publish({ timerId: 't' })]
    database.lease([held, dead], { token, leaseMs: minute })
    database.runNow(
      quarantineDead(names, [{ seq: String(dead), token, reason: 'rejected', error: null, attempts: 1 }]),
    )
    const tx = database.begin()
    await tx.run(cancelTimer(names, { queue: 'orders', timerId: 't', mark: null }))
    const [own] = await tx.run(insert())
    const lease = () => database.lease([held, dead, locked, Number(own!.seq), 99], { token, leaseMs: minute })

    expect([lease(), database.free]).toEqual([[], []])
    clock.now += 2 * minute
    expect(database.free.map(({ seq }) => seq)).toEqual([held])
    const again = lease().map(({ seq, deliveries, suspect }) => [seq, deliveries, suspect])
    expect(again).toEqual([[String(held), '1', 'true']])
    tx.rollback()
    expect(lease().map(({ seq }) => seq)).toEqual([String(locked)])
  })
})

test('a message can be altered, as by somebody’s own SQL: by seq, and nothing else of it', () => {
  const { database, publish, claim } = open()
  publish({ key: 'k' })
  const [before] = database.messages
  database.alter(1, { attempts: 3, deliveries: 4 })
  database.alter(99, { attempts: 1 })

  expect(database.messages).toEqual([{ ...before!, attempts: 3, deliveries: 4 }])
  expect(claim()).toMatchObject([{ attempts: '3', deliveries: '4', suspect: 'true' }])
})

describe('notifications', () => {
  test('come after whoever commits has gone on, also when he commits from within one', async () => {
    const { database, insert } = open()
    const order: string[] = []
    await database.listen?.(['channel', 'own'], {
      lost: () => {},
      notified(channel, payload) {
        order.push(`${channel} ${payload}`)
        if (order.length < 4) database.runNow(sendWord('own'))
        order.push('after')
      },
    })
    database.runNow(insert())
    order.push('committed')
    await new Promise(setImmediate)

    expect(order).toEqual(['committed', 'channel orders', 'after', 'own ', 'after'])
  })

  test('do not come to who has stopped listening meanwhile', async () => {
    const { database, insert } = open()
    const heard: string[] = []
    const hearing = { lost: () => {}, notified: (_: string, payload: string) => void heard.push(payload) }
    const [ended, destroyed] = [
      await database.listen?.(['c'], hearing),
      await database.listen?.(['c'], hearing),
    ]
    database.runNow(insert())
    void ended?.end()
    destroyed?.destroy()
    await new Promise(setImmediate)

    expect(heard).toEqual([])
  })
})

test('times are kept in whole microseconds, as Postgres keeps them', () => {
  const { clock, database, publish } = open()
  clock.now = 1_700_000_000_000 + 0.1234
  publish({ schedule: { kind: 'after', delayMs: 0.000_6 } })

  const [{ createdAt, dueAt }] = database.messages as [MemoryMessage]
  expect([createdAt, dueAt]).toEqual([1_700_000_000_000.123, 1_700_000_000_000.124])
})

test('it is one session for everybody, of any capacity, and has none to give away', () => {
  const { database } = open()

  expect(database).toMatchObject({ singleSession: true, capacity: null })
  expect(database.connect).toBeUndefined()
})
