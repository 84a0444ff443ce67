import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Executor } from '../adapters/executor.ts'
import { resolveSubscribeOptions } from '../core/subscribe-options.ts'
import { resolveNames } from '../sql/names.ts'
import { runConsumer } from './consumer.ts'
import type { Subscription } from './subscription.ts'

// The middle of every jitter.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0.5))
afterEach(() => void vi.restoreAllMocks())

type Look = 'empty' | 'message' | 'failure'

const row = {
  id: '0',
  seq: '1',
  queue: 'q',
  key: null,
  body: '',
  headers: null,
  attempts: '0',
  deliveries: '1',
  created: '0',
  generation: null,
}

/** Runs a consumer over what it finds at each look, and gives the sleeps it asked of the clock. */
async function sleepsOf(looks: readonly Look[]): Promise<number[]> {
  const halt = new AbortController()
  const left = [...looks]
  const sleeps: number[] = []
  const executor = {
    run: async ({ name }: { name: string }) => {
      if (name !== 'claim_due') return name === 'claim_fresh' ? [] : [{ seq: row.seq }]
      const look = left.shift()
      if (look === 'failure') throw new Error('the database is away')
      return look === 'message' ? [row] : []
    },
  } as unknown as Executor
  const clock = {
    sleep: async (ms: number) => {
      sleeps.push(ms)
      if (left.length === 0) halt.abort()
    },
  }
  const subscription: Subscription = {
    queue: 'q',
    name: 'q',
    handler: () => {},
    settings: resolveSubscribeOptions({ pollMs: { min: 100, max: 800 } }),
    rules: { queues: null, codec: undefined, maxBodyBytes: 1 },
  }
  const names = resolveNames({ schema: 'public', table: 'outbox' })
  const signals = { halt: halt.signal, abandon: new AbortController().signal }
  await runConsumer(subscription, { executor, names, clock, log: () => {} }, signals)
  return sleeps
}

test('an idle consumer waits longer after each empty look, up to the end of its ladder', async () => {
  const sleeps = await sleepsOf(['empty', 'empty', 'empty', 'empty', 'empty'])

  expect(sleeps).toEqual([80, 160, 320, 640, 640])
})

test('a message puts an idle consumer back to the bottom of its ladder', async () => {
  const sleeps = await sleepsOf(['empty', 'empty', 'empty', 'message', 'empty'])

  expect(sleeps).toEqual([80, 160, 320, 80])
})

test('a database that fails is asked again after ever longer waits, which begin anew once it answered', async () => {
  const sleeps = await sleepsOf(['failure', 'failure', 'failure', 'message', 'failure'])

  expect(sleeps).toEqual([75, 150, 300, 75])
})
