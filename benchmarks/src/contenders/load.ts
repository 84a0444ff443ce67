import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../bench/statistics.ts'
import { type Body, bodiesOf, type Driver } from './driver.ts'
import type { Loaded, LoadInput, LoadWindow } from './protocol.ts'
import { Tally } from './tally.ts'
import { dueMsOf, publishWhenDue } from './timetable.ts'

/** A transaction for each message would take more processor time than two processors have, for anybody: the latency would be that of the publishers. */
const groupEveryMs = 10
/** Whoever has fallen behind is not waited for any longer when the last message was due. */
const patienceMs = 60_000

/**
 * Messages at a steady rate, whatever becomes of those before: each has a time at which it should be published, and its latency counts from then, so that waiting for its
 * group, and a publisher that is held up, are part of the figure and not left out of it.
 */
export async function measureLoad(driver: Driver, input: LoadInput): Promise<Loaded> {
  const { perSecond, leadSeconds, seconds, windowSeconds } = input
  const messages = Math.round(perSecond * (leadSeconds + seconds))
  const tally = new Tally(messages)
  const windows = Array.from({ length: Math.ceil(seconds / windowSeconds) }, (): Window => new Window())
  const windowAt = (ms: number): Window | undefined =>
    windows[Math.floor((ms / 1_000 - leadSeconds) / windowSeconds)]
  await driver.openPublisher(1)
  await driver.openConsumer()
  let startedAt = performance.now()
  const elapsed = (): number => performance.now() - startedAt
  let finish: () => void
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  await driver.consume(({ n }: Body) => {
    const now = elapsed()
    const dueMs = dueMsOf(n, perSecond)
    windowAt(dueMs)?.add(now - dueMs)
    // What comes when the time is over is late, but not part of any window's throughput.
    windowAt(now)?.count()
    tally.add(n)
    if (tally.handled === messages) finish()
  })
  startedAt = performance.now()
  await publishWhenDue({ messages, perSecond, elapsed, sleep }, groupEveryMs, (from, count) =>
    driver.publishMany(bodiesOf(from, count)),
  )
  await Promise.race([finished, sleep(patienceMs, undefined, { ref: false })])
  // What has not come by now has waited so long at least.
  for (let n = 0; n < messages; n += 1) {
    const dueMs = dueMsOf(n, perSecond)
    if (!tally.has(n)) windowAt(dueMs)?.add(elapsed() - dueMs)
  }
  const late = messages - tally.handled
  return { tally: tally.toText(), late, windows: windows.map((window) => window.figures(windowSeconds)) }
}

/** Latencies of the messages that were due in it; how many were handled in it. */
class Window {
  readonly #latenciesMs: number[] = []
  #handled = 0

  add(latencyMs: number): void {
    this.#latenciesMs.push(latencyMs)
  }

  count(): void {
    this.#handled += 1
  }

  figures(seconds: number): LoadWindow {
    return {
      perSecond: this.#handled / seconds,
      p50Ms: percentile(this.#latenciesMs, 50),
      p99Ms: percentile(this.#latenciesMs, 99),
    }
  }
}
