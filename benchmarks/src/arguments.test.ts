import { describe, expect, test } from 'vitest'
import { readArguments } from './arguments.ts'

describe('the arguments', () => {
  test('name a command', () => {
    expect(readArguments([])).toEqual({
      kind: 'mistake',
      sentence: 'expected a command (counters), got none',
    })
    expect(readArguments(['--update'])).toMatchObject({ kind: 'mistake' })
    expect(readArguments(['toString'])).toEqual({
      kind: 'mistake',
      sentence: 'expected a command (counters), got `toString`',
    })
  })

  test('are read for the command that they follow', () => {
    expect(readArguments(['counters'])).toEqual({ kind: 'counters', json: null, update: false })
    expect(readArguments(['counters', '--update', '--json', 'out.json'])).toEqual({
      kind: 'counters',
      json: 'out.json',
      update: true,
    })
  })

  test.each([
    [['counters', '--rounds', '3'], "Unknown option '--rounds'"],
    [['counters', 'counters'], "Unexpected argument 'counters'"],
    [['counters', '--json'], "Option '--json <value>' argument missing"],
    [['counters', '--update=yes'], "Option '--update' does not take an argument"],
  ])('%j are refused', (given, sentence) => {
    expect(readArguments(given)).toMatchObject({
      kind: 'mistake',
      sentence: expect.stringContaining(sentence),
    })
  })

  test('ask for help wherever --help stands', () => {
    expect(readArguments(['--help'])).toEqual({ kind: 'help' })
    expect(readArguments(['counters', '-h'])).toEqual({ kind: 'help' })
  })
})
