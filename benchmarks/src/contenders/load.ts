import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { percentile } from '../bench/statistics.ts'
import { type Body, bodyOf, type Driver } from './driver.ts'
import { Pool } from './peer.ts'
import type { Loaded, LoadInput, LoadWindow } from './protocol.ts'
import { commitOne } from './publish.ts'
import { Tally } from './tally.ts'

const committers = 8
const tickMs = 2

/**
 * Messages at a steady rate, one a transaction, whatever becomes of those before: each has a time at which it should be published, and its latency counts from then,
 * so that a publisher that is held up is part of the figure and not left out of it.
 */
export async function measureLoad(driver: Driver, url: string, input: LoadInput): Promise<Loaded> {
  const { perSecond, seconds, windowSeconds } = input
  const messages = perSecond * seconds
  const tally = new Tally(messages)
  const windows = Array.from({ length: Math.ceil(seconds / windowSeconds) }, (): Window => new Window())
  const windowAt = (ms: number): Window | undefined => windows[Math.floor(ms / (windowSeconds * 1_000))]
  const dueMs = (n: number): number => (n * 1_000) / perSecond
  await driver.openPublisher(committers)
  await driver.openConsumer()
  let startedAt = performance.now()
  let finish: () => void
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  await driver.consume(({ n }: Body) => {
    const now = performance.now() - startedAt
    // What comes when the time is over is late, but not part of any minute's throughput.
    windowAt(dueMs(n))!.latenciesMs.push(now - dueMs(n))
    const current = windowAt(now)
    if (current !== undefined) current.handled += 1
    tally.add(n)
    if (tally.handled === messages) finish()
  })
  const pool: pg.Pool = new Pool({ connectionString: url, max: committers })
  startedAt = performance.now()
  await publishSteadily(driver, pool, { messages, elapsed: () => performance.now() - startedAt, dueMs })
  await finished
  await pool.end()
  return { tally: tally.toText(), windows: windows.map((window) => figuresOf(window, windowSeconds)) }
}

/** Latencies of the messages that were due in it; how many were handled in it. */
class Window {
  readonly latenciesMs: number[] = []
  handled = 0
}

interface Timetable {
  readonly messages: number
  readonly elapsed: () => number
  readonly dueMs: (n: number) => number
}

async function publishSteadily(
  driver: Driver,
  pool: pg.Pool,
  { messages, elapsed, dueMs }: Timetable,
): Promise<void> {
  let next = 0
  const commitSome = async (client: pg.PoolClient): Promise<void> => {
    while (next < messages) {
      if (dueMs(next) > elapsed()) {
        await wait(tickMs)
        continue
      }
      await commitOne(driver, client, bodyOf(next++))
    }
    client.release()
  }
  const clients = await Promise.all(Array.from({ length: committers }, () => pool.connect()))
  await Promise.all(clients.map(commitSome))
}

function figuresOf({ latenciesMs, handled }: Window, seconds: number): LoadWindow {
  return {
    perSecond: handled / seconds,
    p50Ms: percentile(latenciesMs, 50),
    p99Ms: percentile(latenciesMs, 99),
  }
}
