// Publishers that stay quiet unless somebody sleeps, and sleepers that nobody wakes but they.
import { expect } from 'vitest'
import type { TestDatabase } from '../support/database.ts'
import { collector } from '../support/signals.ts'
import { type Child, expectEnd, type Programs } from './processes.ts'
import { type Published, type Report, wakeQueues } from './protocol.ts'
import { createRandom } from './random.ts'

export interface WakeScene {
  readonly database: TestDatabase
  readonly programs: Programs
}

export interface WakeRounds {
  readonly rounds: number
  readonly seed: number
}

export interface WakeCounts {
  /** Messages that were committed, all of which were delivered. */
  readonly delivered: number
  /** How often a transaction published to a queue, and how often that was announced. */
  readonly announceable: number
  readonly announced: number
}

// Polling is of no use: a message that nobody announces is not delivered within the time of a test.
export const pollMs = { min: 600_000, max: 600_000 }

/**
 * Each round is a few random transactions at a random moment of the sleepers' way to sleep. The next begins when all that was committed
 * has been delivered: a lost wake-up cannot hide behind the notification of somebody else.
 */
export async function publishToSleepers(scene: WakeScene, { rounds, seed }: WakeRounds): Promise<WakeCounts> {
  const { database, programs } = scene
  const tally = createTally()
  // Claims that come back full make a sleeper get up, so that publishers may be quiet: with one slot all do that find something.
  // A queue with one sleeper, one with two, one with the other.
  const [orders, emails, invoices] = wakeQueues
  await using first = startSleeper(scene, [orders, emails], tally.heard)
  await using second = startSleeper(scene, [emails, invoices], tally.heard)
  await using publisher = programs.publisher({ url: database.url, schema: database.schema })
  await Promise.all([first, second, publisher].map((child) => child.until('ready')))
  await using ear = await countAnnouncements(database)
  const random = createRandom(seed)
  const counts = { delivered: 0, announceable: 0 }

  for (let round = 0; round < rounds; round++) {
    const published = await publish(publisher, random.below(2 ** 32))
    await tally.untilDelivered(published)
    counts.delivered += published.committed.length
    counts.announceable += published.announceable
  }

  for (const child of [first, second, publisher]) await expectEnd(child)
  return { ...counts, announced: await ear.count() }
}

function startSleeper(
  { database, programs }: WakeScene,
  queues: readonly string[],
  heard: (report: Report) => void,
): Child {
  const { url, schema } = database
  const options = { concurrency: 1, prefetch: 0, pollMs }
  return programs.worker({ url, schema, queues, options }, { heard })
}

async function publish(publisher: Child, seed: number): Promise<Published> {
  publisher.tell({ kind: 'publish', seed })
  return publisher.until('published', (report) => report.seed === seed)
}

interface Tally {
  heard(report: Report): void
  /** Fails when a message that was committed is not delivered, or one that was rolled back is. */
  untilDelivered(published: Published): Promise<void>
}

function createTally(): Tally {
  const delivered = new Set<string>()
  let look = (): void => {}
  return {
    heard(report) {
      if (report.kind !== 'delivered') return
      delivered.add(report.id)
      look()
    },
    async untilDelivered({ seed, committed, rolledBack }) {
      const missing = (): string[] => committed.filter((id) => !delivered.has(id))
      const all = collector<true>(`the messages of the round with seed ${seed}`)
      look = () => {
        if (missing().length === 0) all.add(true)
      }
      look()
      await all.take(1)
      expect(rolledBack.filter((id) => delivered.has(id))).toEqual([])
      for (const id of committed) delivered.delete(id)
    },
  }
}

interface Announcements extends AsyncDisposable {
  /** How many there were so far. */
  count(): Promise<number>
}

/** Hears what sleepers hear, and is none itself. */
async function countAnnouncements(database: TestDatabase): Promise<Announcements> {
  const client = await database.client()
  let announced = 0
  client.on('notification', () => announced++)
  await client.query(`listen "postbox:${database.schema}.outbox"`)
  return {
    async count() {
      // Its answer comes after every notification that was sent before.
      await client.query('select 1')
      return announced
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}
