import { describe, expect, test } from 'vitest'
import { resolvePause } from './pause-options.ts'

describe('the options of a pause', () => {
  test('say who', () => {
    expect(resolvePause({ by: 'jo' }, 'pause')).toBe('jo')
    expect(resolvePause({ by: 'é'.repeat(127) }, 'resume')).toHaveLength(127)
  })

  test.each([
    [undefined, 'expected the options of pause to be an object, got `undefined`: give { by }'],
    ['jo', 'expected the options of pause to be an object, got `"jo"` (string): give { by }'],
    [{}, 'expected `by` to be a non-empty string, got `undefined`'],
    [{ by: '' }, 'expected `by` to be a non-empty string'],
    [{ by: ' \n\t' }, 'expected `by` to say who it is: not to be blank'],
    [{ by: 7 }, 'expected `by` to be a non-empty string, got `7` (number)'],
    [{ by: 'a\0' }, 'to be storable text'],
    [{ by: 'é'.repeat(128) }, 'to be at most 255 bytes long'],
    [{ by: 'jo', from: 1 }, 'unknown option `from`'],
  ])('are refused as %j', (given, message) => {
    expect(() => resolvePause(given as never, 'pause')).toThrow(
      expect.objectContaining({
        code: 'OUTBOX_INVALID_OPTION',
        message: expect.stringContaining(message),
      }),
    )
  })

  test('are those of the method that was called', () => {
    expect(() => resolvePause(null as never, 'resume')).toThrow('the options of resume')
    expect(() => resolvePause({ by: 'jo', x: 1 } as never, 'resume')).toThrow('unknown option')
  })
})
