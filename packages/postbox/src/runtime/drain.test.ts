import { expect, test } from 'vitest'
import { untilDrained } from './drain.ts'
import type { Runner } from './runner.ts'

test('a drain that cannot be done rejects when what was started for it has ended', async () => {
  const order: string[] = []
  const settled = { acked: 0, retried: 0, snoozed: 0, dead: 0, lost: 0 }
  const untilEmpty = () => Promise.reject(new Error('cannot'))
  const runner = { settled, untilEmpty } as unknown as Runner
  const ended = async (): Promise<void> => {
    await Promise.resolve()
    order.push('ended')
  }
  const drained = untilDrained(Promise.resolve(runner), new Promise(() => {}), ended)
  await drained.catch(() => order.push('rejected'))

  await expect(drained).rejects.toThrow('cannot')
  expect(order).toEqual(['ended', 'rejected'])
})
