import { afterEach, describe, expect, test } from 'vitest'
import { shutdownSignal } from './shutdown-signal.ts'

// Signals that nothing else in a test process listens to.
const names = ['SIGUSR2', 'SIGWINCH'] as const
const listeners = (): number[] => names.map((name) => process.listenerCount(name))
const before = listeners()

describe('shutdownSignal', () => {
  afterEach(() => {
    // Whoever still listens hears its signal and lets go.
    for (const name of names) process.emit(name, name)
  })

  test('aborts with the name of the signal, and not before', () => {
    const signal = shutdownSignal(...names)
    const early = signal.aborted
    process.emit('SIGWINCH', 'SIGWINCH')

    expect([early, signal.aborted]).toEqual([false, true])
    expect(signal.reason).toEqual(new Error('received SIGWINCH'))
  })

  test('listens to no signal any more once it aborted: asked again, the process ends', () => {
    shutdownSignal(...names)
    const during = listeners()
    process.emit('SIGUSR2', 'SIGUSR2')

    expect(during).toEqual(before.map((count) => count + 1))
    expect(listeners()).toEqual(before)
  })

  test('a name given twice leaves nothing behind either', () => {
    shutdownSignal('SIGUSR2', 'SIGUSR2')
    process.emit('SIGUSR2', 'SIGUSR2')

    expect(listeners()).toEqual(before)
  })

  test('two of them abort independently', () => {
    const [first, second] = [shutdownSignal('SIGUSR2'), shutdownSignal('SIGWINCH')]
    process.emit('SIGUSR2', 'SIGUSR2')

    expect([first.aborted, second.aborted]).toEqual([true, false])
  })

  test('without a name it never aborts and adds no listener', () => {
    expect(shutdownSignal().aborted).toBe(false)
    expect(listeners()).toEqual(before)
  })
})
