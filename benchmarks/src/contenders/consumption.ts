import { setTimeout as wait } from 'node:timers/promises'
import type { Handler } from './driver.ts'
import type { Behaviour, Consumed, ConsumeInput } from './protocol.ts'
import { OrderCheck, Tally } from './tally.ts'

const mega = 1_048_576
const tellEveryMs = 5

/** Counts what is handled, tells how far it has come, and watches the memory meanwhile. */
export class Consumption {
  readonly handler: Handler
  readonly #tally: Tally
  readonly #order: OrderCheck | null
  readonly #timer: NodeJS.Timeout
  readonly #cpuBefore = process.cpuUsage()
  #peakHeap = 0
  #peakRss = 0

  constructor({ messages, behaviour, keys }: ConsumeInput, tell: (handled: number) => void) {
    const tally = new Tally(messages)
    this.#tally = tally
    this.#order = keys === undefined ? null : new OrderCheck(keys)
    this.handler = inOrder(handlerOf(behaviour, tally), this.#order)
    let told = 0
    this.#timer = setInterval(() => {
      this.#watch()
      if (tally.handled === told) return
      told = tally.handled
      tell(told)
    }, tellEveryMs)
  }

  end(): Consumed {
    clearInterval(this.#timer)
    const { user, system } = process.cpuUsage(this.#cpuBefore)
    return {
      tally: this.#tally.toText(),
      disordered: this.#order?.disordered ?? 0,
      nodeCpuMs: (user + system) / 1_000,
      peakHeapMb: this.#peakHeap / mega,
      peakRssMb: this.#peakRss / mega,
    }
  }

  #watch(): void {
    const { heapUsed, rss } = process.memoryUsage()
    this.#peakHeap = Math.max(this.#peakHeap, heapUsed)
    this.#peakRss = Math.max(this.#peakRss, rss)
  }
}

function inOrder(handler: Handler, order: OrderCheck | null): Handler {
  if (order === null) return handler
  return (body) => {
    order.see(body.n)
    return handler(body)
  }
}

function handlerOf(behaviour: Behaviour, tally: Tally): Handler {
  switch (behaviour.kind) {
    case 'nothing':
      return ({ n }) => {
        tally.add(n)
      }
    case 'wait':
      return ({ n }) => {
        tally.add(n)
        return wait(behaviour.ms)
      }
    case 'fail':
      return ({ n }) => {
        if (tally.add(n) <= behaviour.times) throw new Error('not yet')
      }
    case 'hang':
      return ({ n }) => {
        tally.add(n)
        return new Promise(() => {})
      }
  }
}
