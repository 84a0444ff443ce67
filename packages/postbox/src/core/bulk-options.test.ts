import { describe, expect, test } from 'vitest'
import {
  assertDiscard,
  assertResume,
  resolveDiscard,
  resolveOperationList,
  resolveReplayAll,
} from './bulk-options.ts'

const id = '01890000-0000-7000-8000-00000000000a'
const any = { queue: null, reason: null, key: null, search: null, sinceMs: null, untilMs: null }
const refusal = (says: string) =>
  expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION', message: expect.stringContaining(says) })

describe('resolveReplayAll', () => {
  test('takes everything for granted but who does it', () => {
    expect(resolveReplayAll({}, { by: 'me' })).toEqual({
      query: any,
      by: 'me',
      isDryRun: false,
      settings: { perSecond: null, limit: null, generation: null, delayMs: 0 },
    })
  })

  test('gives back what was asked for', () => {
    const settings = { perSecond: 0.5, limit: 7, generation: 3, delayMs: 9 }
    const watching = { signal: new AbortController().signal, onProgress: () => {} }

    expect(resolveReplayAll({ queue: 'a' }, { by: 'me', dryRun: true, ...settings, ...watching })).toEqual({
      ...{ query: { ...any, queue: 'a' }, by: 'me', isDryRun: true, settings },
    })
  })

  test.each([
    [{}, 'expected `by` to be a non-empty string'],
    [{ by: '' }, 'expected `by` to be a non-empty string'],
    [{ by: 'é'.repeat(128) }, 'at most 255 bytes'],
    [undefined, 'give { by }'],
    ['me', 'give { by }'],
    [{ by: 'me', perSecond: 0 }, 'to be a number from 0.000001 to 100000, got `0`'],
    [{ by: 'me', perSecond: -1 }, '`perSecond`'],
    [{ by: 'me', perSecond: 100_001 }, '`perSecond`'],
    [{ by: 'me', perSecond: Number.NaN }, '`perSecond`'],
    [{ by: 'me', perSecond: '5' }, '`perSecond`'],
    [{ by: 'me', limit: 0 }, '`limit`'],
    [{ by: 'me', limit: 1.5 }, '`limit`'],
    [{ by: 'me', generation: -1 }, '`generation`'],
    [{ by: 'me', delayMs: -1 }, '`delayMs`'],
    [{ by: 'me', dryRun: 'yes' }, 'to be true or false'],
    [{ by: 'me', signal: true }, 'to be an AbortSignal'],
    [{ by: 'me', onProgress: 1 }, 'to be a function'],
    [{ by: 'me', dryrun: true }, 'did you mean `dryRun`'],
  ])('refuses the options %j', (options, says) => {
    expect(() => resolveReplayAll({}, options as never)).toThrow(refusal(says))
  })

  test.each([
    [undefined, 'give {} when all are meant'],
    [{ queue: undefined, key: undefined }, 'got `queue`, `key` as undefined: give {} when all are meant'],
    [null, 'give {} when all are meant'],
    ['orders', 'give {} when all are meant'],
    [{ reason: 'rejcted' }, "did you mean 'rejected'"],
    [{ limit: 5 }, 'unknown option `limit`'],
  ])('refuses the filter %j: nobody replays everything by leaving something out', (filter, says) => {
    expect(() => resolveReplayAll(filter as never, { by: 'me' })).toThrow(refusal(says))
  })
})

describe('resolveDiscard', () => {
  test('gives back the filter', () => {
    expect(resolveDiscard({ key: 'k' }, { by: 'me' })).toEqual({ ...any, key: 'k' })
  })

  test.each([
    [undefined, { by: 'me' }, 'give {} when all are meant'],
    [{}, {}, 'expected `by`'],
    [{}, undefined, 'give { by }'],
    [{}, { by: 'me', dryRun: true }, 'unknown option `dryRun`'],
  ])('refuses %j with %j', (filter, options, says) => {
    expect(() => resolveDiscard(filter as never, options as never)).toThrow(refusal(says))
  })

  test('one by its id needs somebody who answers for it, too', () => {
    expect(() => assertDiscard({} as never)).toThrow(refusal('expected `by`'))
    expect(() => assertDiscard({ by: 'me' })).not.toThrow()
  })
})

describe('assertResume', () => {
  test.each([
    ['1', { by: 'me' }, 'to be the id of an operation'],
    [undefined, { by: 'me' }, 'to be the id of an operation'],
    [id, {}, 'expected `by`'],
    [id, { by: 'me', perSecond: 5 }, 'unknown option `perSecond`'],
  ])('refuses %j with %j', (operation, options, says) => {
    expect(() => assertResume(operation, options as never)).toThrow(refusal(says))
  })

  test('takes an id and who goes on', () => {
    expect(() => assertResume(id, { by: 'me' })).not.toThrow()
  })
})

describe('resolveOperationList', () => {
  test('shows fifty from the newest on, unless told otherwise', () => {
    expect(resolveOperationList()).toEqual({ limit: 50, after: null })
    expect(resolveOperationList({ limit: 3, after: `5-${id}` })).toEqual({
      limit: 3,
      after: { startedMicros: '5', id },
    })
  })

  test.each([
    [{ limit: 0 }, '`limit`'],
    [{ limit: 1_001 }, '`limit`'],
    [{ after: 5 }, 'to be a string'],
    [{ after: '5' }, 'the `next` of a page of operations'],
    [{ after: `5-${id}x` }, 'the `next` of a page of operations'],
    [{ after: `x-${id}` }, 'the `next` of a page of operations'],
    [{ by: 'me' }, 'unknown option `by`'],
  ])('refuses %j', (options, says) => {
    expect(() => resolveOperationList(options as never)).toThrow(refusal(says))
  })
})
