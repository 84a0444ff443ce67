import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { shutdownSignal } from './shutdown-signal.ts'

// Signals that nothing else in a test process listens to.
const names = ['SIGUSR2', 'SIGWINCH'] as const
const listeners = (): number[] => names.map((name) => process.listenerCount(name))
const echoMs = 500

describe('shutdownSignal', () => {
  let before: number[] = []

  beforeEach(() => {
    vi.useFakeTimers()
    before = listeners()
  })

  afterEach(() => {
    // Whoever still listens hears its signal and lets go.
    for (const name of names) process.emit(name, name)
    vi.advanceTimersByTime(echoMs)
    vi.useRealTimers()
  })

  test('aborts with the name of the signal, and not before', () => {
    const signal = shutdownSignal(...names)
    const early = signal.aborted
    process.emit('SIGWINCH', 'SIGWINCH')

    expect([early, signal.aborted]).toEqual([false, true])
    expect(signal.reason).toEqual(new Error('received SIGWINCH'))
  })

  test('the echo of a signal is heard and ignored: the process does not end of it', () => {
    const signal = shutdownSignal(...names)
    process.emit('SIGUSR2', 'SIGUSR2')
    vi.advanceTimersByTime(echoMs - 1)
    const during = listeners()
    process.emit('SIGWINCH', 'SIGWINCH')

    expect(during).toEqual(before.map((count) => count + 1))
    expect(signal.reason).toEqual(new Error('received SIGUSR2'))
  })

  test('half a second later it listens to no signal any more: asked again, the process ends', () => {
    shutdownSignal(...names)
    process.emit('SIGUSR2', 'SIGUSR2')
    vi.advanceTimersByTime(echoMs)

    expect(listeners()).toEqual(before)
  })

  test('an echo does not prolong the half second', () => {
    shutdownSignal(...names)
    process.emit('SIGUSR2', 'SIGUSR2')
    vi.advanceTimersByTime(echoMs - 1)
    process.emit('SIGUSR2', 'SIGUSR2')
    vi.advanceTimersByTime(1)

    expect(listeners()).toEqual(before)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a name given twice leaves nothing behind either', () => {
    shutdownSignal('SIGUSR2', 'SIGUSR2')
    process.emit('SIGUSR2', 'SIGUSR2')
    vi.advanceTimersByTime(echoMs)

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
