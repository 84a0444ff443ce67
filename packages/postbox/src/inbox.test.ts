import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../tests/support/fake-clock.ts'
import type { Database, Handle } from './adapters/executor.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { resolveNames } from './sql/names.ts'
import type { Statement } from './sql/statement.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const message = { consumer: 'billing', id: 'order-1' }

interface Scripted {
  readonly inbox: Inbox
  /** What a user passes, and the handle that it is. */
  readonly tx: never
  readonly sent: readonly string[]
  readonly clock: ReturnType<typeof fakeClock>
}

/** An inbox in whose transaction marks are answered in this order, an error by throwing it, the last one for ever; each answer takes so long. */
function scripted(
  answers: readonly (object | Error)[],
  { takesMs = 0, forgetting = async (): Promise<readonly object[]> => [] } = {},
): Scripted {
  const sent: string[] = []
  const clock = fakeClock()
  const left = [...answers]
  const run = async <Row>({ name }: Statement<Row>): Promise<readonly Row[]> => {
    sent.push(name)
    if (name === 'forget_handled') return (await forgetting()) as readonly Row[]
    clock.advance(takesMs)
    const answer = left.length > 1 ? left.shift() : left[0]
    if (answer instanceof Error) throw answer
    return [answer] as unknown as readonly Row[]
  }
  const handle: Handle = {
    client: 'own',
    singleSession: false,
    run,
    transactionState: () => ({ inside: true }),
  }
  const database: Database = {
    run,
    transaction: (work) => work({ run }, null),
    singleSession: false,
    capacity: null,
  }
  const outbox = { names, handleOf: () => handle }
  const inbox = createInbox({ database: () => database, outbox, internals: () => ({ clock }) })
  return { inbox, tx: {} as never, sent, clock }
}

const marked = { answer: 'marked' }
const busy = { answer: 'busy' }
const duplicate = { answer: 'duplicate' }

/** Lets time pass until it resolves. */
async function whileTimePasses<T>(clock: Scripted['clock'], result: Promise<T>): Promise<T> {
  let isOver = false
  const over = result.finally(() => {
    isOver = true
  })
  while (!isOver) {
    await new Promise<void>((resolve) => void setImmediate(resolve))
    clock.advance(clock.left[0] ?? 0)
  }
  return over
}

describe('once', () => {
  test('runs the work after one statement, and gives its value', async () => {
    const { inbox, tx, sent, clock } = scripted([marked])

    expect(await inbox.once(tx, message, async () => [...sent])).toEqual({
      ran: true,
      value: ['mark_handled'],
    })
    expect([sent, clock.asked]).toEqual([['mark_handled'], []])
  })

  test('does not run the work for a duplicate, and does not wait', async () => {
    const { inbox, tx, clock } = scripted([duplicate])

    expect(await inbox.once(tx, message, neverRun)).toEqual({ ran: false, because: 'duplicate' })
    expect(clock.asked).toEqual([])
  })

  test('looks again while somebody else has it, soon at first, until the second is over', async () => {
    const { inbox, tx, sent, clock } = scripted([busy])

    expect(await whileTimePasses(clock, inbox.once(tx, message, neverRun))).toEqual({
      ran: false,
      because: 'busy',
    })
    expect(clock.asked).toEqual([5, 10, 20, 40, 80, ...Array(8).fill(100), 45])
    expect(clock.now()).toBe(1_000)
    expect(sent).toHaveLength(15)
  })

  test('counts the time of its own statements', async () => {
    const { inbox, tx, clock } = scripted([busy], { takesMs: 30 })

    await whileTimePasses(clock, inbox.once(tx, { ...message, lockMs: 100 }, neverRun))

    expect(clock.asked).toEqual([5, 10])
  })

  test('does not wait where it is told not to', async () => {
    const { inbox, tx, sent, clock } = scripted([busy, marked])

    expect(await inbox.once(tx, { ...message, lockMs: 0 }, neverRun)).toEqual({ ran: false, because: 'busy' })
    expect([sent, clock.asked]).toEqual([['mark_handled'], []])
  })

  test.each<[string, object, object]>([
    ['committed', duplicate, { ran: false, because: 'duplicate' }],
    ['rolled back', marked, { ran: true, value: 'done' }],
  ])('goes by what the other has done in the end: %s', async (_, answer, result) => {
    const { inbox, tx, clock } = scripted([busy, busy, answer])

    expect(
      await whileTimePasses(
        clock,
        inbox.once(tx, message, () => 'done'),
      ),
    ).toEqual(result)
    expect(clock.asked).toEqual([5, 10])
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    ['rejects', () => Promise.reject(new Error('mine'))],
  ])('takes the mark back when the work %s, and throws the same', async (_, work) => {
    const { inbox, tx, sent } = scripted([marked])

    await expect(inbox.once(tx, message, work)).rejects.toThrow('mine')
    expect(sent).toEqual(['mark_handled', 'forget_handled'])
  })

  test('throws what the work threw, also when the transaction has failed and the mark cannot be taken back', async () => {
    const forgetting = () => Promise.reject(Object.assign(new Error('25P02'), { code: '25P02' }))
    const { inbox, tx } = scripted([marked], { forgetting })

    await expect(inbox.once(tx, message, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
  })

  test('an answer with other columns is not taken for a duplicate: that would be lost', async () => {
    const { inbox, tx } = scripted([{ Answer: 'marked' }])

    await expect(inbox.once(tx, message, neverRun)).rejects.toMatchObject({ code: 'OUTBOX_UNKNOWN_HANDLE' })
  })

  test('an error of the database is thrown as it is, but tables that were never made are named', async () => {
    const { inbox, tx } = scripted([Object.assign(new Error('serialize'), { code: '40001' })])
    await expect(inbox.once(tx, message, neverRun)).rejects.toMatchObject({ code: '40001' })

    const bare = scripted([Object.assign(new Error('no table'), { code: '42P01' })])
    await expect(bare.inbox.once(bare.tx, message, neverRun)).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_MISSING',
      message: expect.stringContaining('outbox_handled'),
    })
  })

  test('refuses what it cannot use before it sends anything', async () => {
    const { inbox, tx, sent } = scripted([marked])

    await expect(inbox.once(tx, { consumer: '', id: '' }, neverRun)).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
    })
    await expect(inbox.once(tx, message, undefined as never)).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
    })
    expect(sent).toEqual([])
  })
})

describe('purge', () => {
  test('counts what was purged', async () => {
    const { inbox, sent } = scripted([{ purged: '7' }])

    expect(await inbox.purge({ olderThanMs: 1, consumer: 'billing' })).toEqual({ purged: 7 })
    expect(sent.at(-1)).toBe('purge_handled')
  })

  test('refuses what it cannot use before it sends anything', async () => {
    const { inbox, sent } = scripted([{ purged: '7' }])

    for (const given of [undefined, {}, { olderThanMs: 1, consumer: '' }, { olderThanMs: 1, consumers: 'x' }])
      await expect(inbox.purge(given as never)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
    expect(sent).toEqual([])
  })

  test('names tables that were never made', async () => {
    const { inbox } = scripted([Object.assign(new Error('no table'), { code: '42P01' })])

    await expect(inbox.purge({ olderThanMs: 1 })).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
  })
})

function neverRun(): never {
  throw new Error('the work has run')
}
