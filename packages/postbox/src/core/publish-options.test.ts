import { describe, expect, test } from 'vitest'
import { assertPublishOptions } from './publish-options.ts'

const check = (options: unknown) => () => assertPublishOptions(options as never)

const invalid = expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' })

describe('assertPublishOptions', () => {
  test.each([
    undefined,
    {},
    { key: 'é'.repeat(512), timerId: 'x'.repeat(1_024), correlationId: 'c', contentType: 'image/png' },
    { timerId: 't', onConflict: 'keep' },
    { timerId: 't', onConflict: 'replace' },
    { id: '0190163D-8694-739B-9AEA-966C26F8AD91' },
    { key: undefined, onConflict: undefined },
  ])('accepts what is right (case %#)', (options) => {
    expect(check(options)).not.toThrow()
  })

  test.each([
    null,
    'key',
    [],
    { key: '' },
    { key: 7 },
    { key: null },
    { key: `${'é'.repeat(512)}x` },
    { key: '\u0000' },
    { key: '\ud83d' },
    { timerId: '' },
    { timerId: 'x'.repeat(1_025) },
    { timerId: 'a\u0000' },
    { correlationId: '' },
    { correlationId: '\ude00' },
    { contentType: '' },
    { contentType: 'x'.repeat(256) },
    { id: 'not-a-uuid' },
    { id: '0190163d8694739b9aea966c26f8ad91' },
    { timerId: 't', onConflict: 'ignore' },
    { onConflict: 'keep' },
    { timerid: 't' },
  ])('refuses what is wrong (case %#)', (options) => {
    expect(check(options)).toThrow(invalid)
  })

  test('says every problem at once', () => {
    expect(check({ key: '', id: 7, timerid: 't' })).toThrow(/`key`.*`id`.*did you mean `timerId`/)
  })

  test('an accessor of a class is checked like a member', () => {
    class Options {
      get key(): string {
        return 'a\u0000b'
      }
    }

    expect(check(new Options())).toThrow(invalid)
  })
})
