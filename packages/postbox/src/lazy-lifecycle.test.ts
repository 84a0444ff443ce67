import { describe, expect, test } from 'vitest'
import { lazyLifecycle } from './lazy-lifecycle.ts'
import type { Lifecycle } from './lifecycle.ts'

/** A lifecycle that is loaded when it is told to, with a record of what was called. */
function lifecycleOf() {
  const calls: string[] = []
  let loads = 0
  let load = (): void => {}
  let fail = (_error: Error): void => {}
  const opened = new Promise<void>((resolve, reject) => {
    load = resolve
    fail = reject
  })
  const handle = { stop: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const called =
    <T>(name: string, value: T) =>
    async (): Promise<T> => {
      calls.push(name)
      return value
    }
  const loaded: Lifecycle = {
    start: called('start', handle),
    stop: called('stop', undefined),
    run: called('run', undefined),
    drain: called('drain', { acked: 0, retried: 0, snoozed: 0, dead: 0, lost: 0, isEmpty: true }),
    ping: called('ping', true),
    health: () => ({ ok: true, reasons: [] }),
  }
  const lifecycle = lazyLifecycle(async () => {
    loads++
    await opened
    return loaded
  })
  return { lifecycle, calls, load, fail, handle, loads: () => loads }
}

describe('lazyLifecycle', () => {
  test('loads nothing before it is needed, and then once', async () => {
    const { lifecycle, load, loads, handle } = lifecycleOf()
    await lifecycle.stop()
    const before = loads()
    load()
    const handles = await Promise.all([lifecycle.start(), lifecycle.start()])
    await lifecycle.ping()

    expect([before, loads()]).toEqual([0, 1])
    expect(handles).toEqual([handle, handle])
  })

  test.each(['before it was loaded', 'afterwards'])('keeps the order of calls made %s', async (when) => {
    const { lifecycle, calls, load } = lifecycleOf()
    if (when === 'afterwards') {
      load()
      await lifecycle.ping()
    }
    const { start, stop, run, drain } = lifecycle
    const all = [start(), stop(), start(), run(), stop(), drain()]
    load()
    await Promise.all(all)

    expect(calls.filter((name) => name !== 'ping')).toEqual([
      'start',
      'stop',
      'start',
      'run',
      'stop',
      'drain',
    ])
  })

  test('says that it is not running, then that it is starting, then what the loaded one says', async () => {
    const { lifecycle, load } = lifecycleOf()
    const idle = lifecycle.health()
    const starting = lifecycle.start()
    const loading = lifecycle.health()
    load()
    await starting

    expect([idle, loading, lifecycle.health()]).toEqual([
      { ok: false, reasons: ['it is not running'] },
      { ok: false, reasons: ['it is starting'] },
      { ok: true, reasons: [] },
    ])
  })

  test('a load that fails is told to whoever started, and not by stop', async () => {
    const { lifecycle, fail } = lifecycleOf()
    const started = lifecycle.start()
    const stopped = lifecycle.stop()
    fail(new Error('no such file'))

    await expect(started).rejects.toThrow('no such file')
    await expect(stopped).resolves.toBeUndefined()
  })
})
