import { describe, expect, test } from 'vitest'
import { LazyController } from './lazy-controller.ts'

const lost = new Error('lease lost')
const stopping = new Error('the outbox stops')

describe('LazyController', () => {
  test('gives one signal, whoever asks, and however often', () => {
    const controller = new LazyController()

    expect(controller.signal).toBeInstanceOf(AbortSignal)
    expect(controller.signal).toBe(controller.signal)
  })

  test('a signal that was asked for before the abort is told of it, once, with the reason', () => {
    const controller = new LazyController()
    const heard: unknown[] = []
    controller.signal.addEventListener('abort', () => heard.push(controller.signal.reason))
    const before = controller.signal.aborted
    controller.abort(lost)
    controller.abort(stopping)

    expect([before, controller.signal.aborted, heard]).toEqual([false, true, [lost]])
  })

  test('a signal that is asked for after the abort has aborted, for the first reason', () => {
    const controller = new LazyController()
    controller.abort(lost)
    controller.abort(stopping)

    expect([controller.signal.aborted, controller.signal.reason]).toEqual([true, lost])
  })

  test('says whether it has aborted, and why, as its signal does', () => {
    const controller = new LazyController()
    const before = [controller.isAborted, controller.reason]
    controller.abort(lost)
    controller.abort(stopping)

    expect([before, [controller.isAborted, controller.reason]]).toEqual([
      [false, undefined],
      [true, lost],
    ])
  })
})
