import { expect, test } from 'vitest'
import type { Line, MetricName, Result } from './metrics.ts'
import { ratiosOf } from './ratios.ts'

function line(contender: string, metric: MetricName, ...values: readonly (number | null)[]): Line {
  const rounds = values.map((value) => ({ [metric]: value }))
  return {
    contender,
    tuning: 'tuned',
    settings: {},
    messages: [100],
    isGivenFewer: false,
    rounds,
    refused: [],
  }
}

function result(scenario: string, ...lines: readonly Line[]): Result {
  return {
    scenario,
    title: scenario,
    figure: 'perSecond',
    isMoreBetter: true,
    isPublishing: scenario.startsWith('publish'),
    about: 'What is done.',
    cannot: {},
    lines,
  }
}

test('a ratio is the median of the rounds, each held against the same round of the best peer', () => {
  const { drainNoop } = ratiosOf([
    result(
      'drain-noop',
      line('postbox', 'perSecond', 300, 30, 330),
      line('pg-boss', 'perSecond', 100, 10, 100),
      line('bullmq', 'perSecond', 50, 200, 50),
      line('floor', 'perSecond', 9_000, 9_000, 9_000),
    ),
  ])
  expect(drainNoop).toEqual({
    value: 3,
    bar: 2.5,
    isMet: true,
    peer: 'pg-boss',
    spread: { min: 3, max: 3.3 },
    figures: { ours: 300, theirs: 100 },
    inTransaction: null,
  })
})

test('where less is better the best peer is the one with least, and the bar is the most', () => {
  const wal = (ours: number): boolean | undefined =>
    ratiosOf([
      result(
        'drain-noop',
        line('postbox', 'walBytes', ours),
        line('pg-boss', 'walBytes', 2_000),
        line('graphile-worker', 'walBytes', 1_000),
      ),
    ]).walPerMessage?.isMet
  expect(wal(550)).toBe(true)
  expect(wal(560)).toBe(false)
})

test('rounds that a peer was refused in are made up for by its median', () => {
  const { drainNoop } = ratiosOf([
    result('drain-noop', line('postbox', 'perSecond', 200, 400), line('pg-boss', 'perSecond', 100)),
  ])
  expect(drainNoop?.spread).toEqual({ min: 2, max: 4 })
})

test('only peers that wake their consumers count where that is the question', () => {
  const { publish64VsPeer, publish64VsPlain } = ratiosOf([
    result(
      'publish-64',
      line('floor', 'perSecond', 100),
      line('postbox', 'perSecond', 90),
      line('pg-boss', 'perSecond', 80),
      line('graphile-worker', 'perSecond', 30),
    ),
  ])
  expect(publish64VsPeer).toMatchObject({ value: 3, peer: 'graphile-worker' })
  expect(publish64VsPlain).toMatchObject({ value: 0.9, peer: 'floor', isMet: true })
})

test('a peer that commits by itself counts where publishing is measured, and the best that does not is named beside it', () => {
  const lines = [
    line('postbox', 'perSecond', 90, 100),
    line('bullmq', 'perSecond', 75, 80),
    line('graphile-worker', 'perSecond', 45, 40),
  ]
  const { publish64VsPeer } = ratiosOf([result('publish-64', ...lines)])
  expect(publish64VsPeer).toMatchObject({
    value: 1.2,
    peer: 'bullmq',
    inTransaction: { value: 2, peer: 'graphile-worker' },
  })
  const { drainNoop } = ratiosOf([result('drain-noop', ...lines)])
  expect(drainNoop).toMatchObject({ peer: 'bullmq', inTransaction: null })
})

test('a figure by itself is held against nobody', () => {
  const { timerP99Ms } = ratiosOf([
    result('timers', line('postbox', 'p99Ms', 5, 7, 6), line('bullmq', 'p99Ms', 1)),
  ])
  expect(timerP99Ms).toEqual({
    value: 6,
    bar: 20,
    isMet: true,
    peer: null,
    spread: { min: 5, max: 7 },
    figures: { ours: 6, theirs: null },
    inTransaction: null,
  })
})

test('what was not measured is not there', () => {
  const alone = ratiosOf([result('drain-noop', line('postbox', 'perSecond', 1))])
  expect(alone).toEqual({})
  expect(
    ratiosOf([result('drain-noop', line('postbox', 'walBytes', null), line('bullmq', 'walBytes', 3))]),
  ).toEqual({})
})

test('a peer that ran at two tunings is named with the one that was best', () => {
  const defaults = { ...line('bullmq', 'p50Ms', 3), tuning: 'defaults' }
  const { idleP50 } = ratiosOf([
    result('idle-latency', line('postbox', 'p50Ms', 3), line('bullmq', 'p50Ms', 4), defaults),
  ])
  expect(idleP50).toMatchObject({ value: 1, peer: 'bullmq (defaults)' })
})
