// Timers that are armed, cancelled and armed again by some while others claim them; and who may complain afterwards.
import type pg from 'pg'
import { constant, createOutbox, type Message, type Outbox } from 'postbox'
import { expect } from 'vitest'
import { createRandom, type Random } from '../chaos/random.ts'
import type { TestDatabase } from './database.ts'
import { eventually } from './signals.ts'

/** What happened under one name. */
interface Named {
  readonly armed: Set<string>
  /** Cancels that were committed. */
  cancels: number
}

interface Books {
  readonly names: Map<string, Named>
  /** Message → how often its handler succeeded. */
  readonly fired: Map<string, number>
  /** Published in a transaction that was rolled back. */
  readonly undone: Set<string>
}

const committers = 4
const perTransaction = 50

/**
 * Arms so many timers in transactions of fifty, cancels some of the last thousand and arms some of those again; a tenth of all transactions
 * is rolled back. Two outboxes deliver meanwhile, and every tenth timer fails when it first fires. At the end each message must have been
 * done once, or be accounted for by a cancel of its name.
 */
export async function weatherTimerStorm(
  database: TestDatabase,
  { timers, withinMs }: { readonly timers: number; readonly withinMs: number },
): Promise<void> {
  const seed = Date.now() % 1_000_000
  const pool = database.pool({ max: 20 })
  const options = { database: pool, schema: database.schema, logger: false } as const
  const publisher = createOutbox(options)
  await publisher.migrate()
  const books: Books = { names: new Map(), fired: new Map(), undone: new Set() }
  const consumers = [createOutbox(options), createOutbox(options)]
  for (const consumer of consumers) {
    consumer.subscribe('timers', failing(books), { concurrency: 100, retry: constant({ delayMs: 100 }) })
    await consumer.start()
  }
  const storms = Array.from({ length: committers }, (_, worker) =>
    storm({ pool, publisher, random: createRandom(seed + worker) }, books, {
      own: Array.from({ length: Math.ceil(timers / committers) }, (_, n) => `timer-${worker}-${n}`),
    }),
  )
  await Promise.all(storms)
  const isEmpty = async () => (await database.query('select 1 from outbox limit 1')).length === 0
  await eventually(isEmpty, { what: 'all timers to fire', withinMs })
  await Promise.all(consumers.map((consumer) => consumer.stop()))
  await pool.end()

  const armed = sum(books, ({ armed: ids }) => ids.size)
  const cancels = sum(books, (one) => one.cancels)
  const said = `${armed} armed, ${books.fired.size} fired, ${cancels} cancelled, ${books.undone.size} rolled back`
  console.info(`timers (seed ${seed}): ${said}`)
  expect(complaints(books)).toEqual([])
  expect(await database.query('select 1 from outbox_dead')).toEqual([])
  expect(armed).toBeGreaterThan(timers * 0.8)
  expect(cancels).toBeGreaterThan(timers / 20)
}

function failing({ fired }: Books): (message: Message) => void {
  return ({ id, attempt }) => {
    if (attempt === 1 && id.endsWith('0')) throw new Error('not the first time')
    fired.set(id, (fired.get(id) ?? 0) + 1)
  }
}

interface Means {
  readonly pool: pg.Pool
  readonly publisher: Outbox
  readonly random: Random
}

async function storm(
  means: Means,
  books: Books,
  { own }: { readonly own: readonly string[] },
): Promise<void> {
  const { random } = means
  let roundMs = 0
  for (let start = 0; start < own.length; start += perTransaction) {
    const begunAt = performance.now()
    // However slow the machine is, some that were armed in the last rounds have not fired yet and can be cancelled.
    const longestMs = 1_500 + Math.ceil(5 * roundMs)
    await arm({ ...means, longestMs }, books, own.slice(start, start + perTransaction))
    const lately = own.slice(Math.max(0, start - 19 * perTransaction), start + perTransaction)
    const some = lately.filter(() => random.below(lately.length) < 15)
    await cancel(means, books, some)
    await arm({ ...means, longestMs }, books, some.slice(0, 5))
    roundMs = performance.now() - begunAt
  }
}

async function arm(
  means: Means & { readonly longestMs: number },
  { names, undone }: Books,
  wanted: readonly string[],
): Promise<void> {
  const { publisher, random, longestMs } = means
  const given = (timerId: unknown) => ({ timerId: timerId as string, delayMs: random.below(longestMs) })
  await inMaybe(means, async (client) => {
    const receipts = await publisher.publishMany(client, 'timers', [...wanted], given)
    return (isCommitted) => {
      for (const [index, receipt] of receipts.entries()) {
        if (receipt === null) continue
        if (isCommitted) of(names, wanted[index] ?? '').armed.add(receipt.id)
        else undone.add(receipt.id)
      }
    }
  })
}

async function cancel(means: Means, { names }: Books, wanted: readonly string[]): Promise<void> {
  await inMaybe(means, async (client) => {
    const gone: string[] = []
    for (const name of wanted) if (await means.publisher.cancelTimer(client, 'timers', name)) gone.push(name)
    return (isCommitted) => {
      if (isCommitted) for (const name of gone) of(names, name).cancels++
    }
  })
}

/** A transaction that is rolled back once in ten times. */
async function inMaybe(
  { pool, random }: Means,
  work: (client: pg.PoolClient) => Promise<(isCommitted: boolean) => void>,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const note = await work(client)
    const isCommitted = !random.isBelow(0.1)
    note(isCommitted)
    await client.query(isCommitted ? 'commit' : 'rollback')
  } finally {
    client.release()
  }
}

/** Of all that were armed under a name, as many did not fire as were cancelled; nothing fired twice, or was rolled back and fired. */
function complaints({ names, fired, undone }: Books): readonly string[] {
  const known = new Set([...names.values()].flatMap(({ armed }) => [...armed]))
  const wrong = [...names].flatMap(([name, { armed, cancels }]) => {
    const missing = [...armed].filter((id) => !fired.has(id)).length
    return missing === cancels ? [] : [`${name}: ${missing} did not fire, ${cancels} were cancelled`]
  })
  const twice = [...fired]
    .filter(([, times]) => times !== 1)
    .map(([id, times]) => `${id} fired ${times} times`)
  const ghosts = [...fired.keys()].filter((id) => undone.has(id) || !known.has(id))
  return [...wrong, ...twice, ...ghosts.map((id) => `${id} was never committed`)]
}

function of(names: Map<string, Named>, name: string): Named {
  const one = names.get(name) ?? { armed: new Set<string>(), cancels: 0 }
  names.set(name, one)
  return one
}

function sum({ names }: Books, of: (one: Named) => number): number {
  return [...names.values()].reduce((total, one) => total + of(one), 0)
}
