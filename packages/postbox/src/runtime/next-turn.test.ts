import { expect, onTestFinished, test, vi } from 'vitest'

test('is what it was when the package was loaded, though deliveries begin when a test has put another in its place', async () => {
  const real = setImmediate
  vi.resetModules()
  await import('../outbox.ts')
  vi.useFakeTimers({ toFake: ['setImmediate'] })
  onTestFinished(() => void vi.useRealTimers())
  const { inNextTurn } = await import('./next-turn.ts')

  expect(setImmediate).not.toBe(real)
  expect(inNextTurn).toBe(real)
})
