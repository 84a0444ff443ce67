import { describe, expect, test } from 'vitest'
import { readArguments } from './arguments.ts'

describe('the arguments', () => {
  test('name a command', () => {
    expect(readArguments([])).toEqual({
      kind: 'mistake',
      sentence: 'expected a command (counters, order, bench), got none',
    })
    expect(readArguments(['--update'])).toMatchObject({ kind: 'mistake' })
    expect(readArguments(['toString'])).toEqual({
      kind: 'mistake',
      sentence: 'expected a command (counters, order, bench), got `toString`',
    })
  })

  test('are read for the command that they follow', () => {
    expect(readArguments(['counters'])).toEqual({ kind: 'counters', json: null, update: false })
    expect(readArguments(['counters', '--update', '--json', 'out.json'])).toEqual({
      kind: 'counters',
      json: 'out.json',
      update: true,
    })
    expect(readArguments(['order'])).toEqual({ kind: 'order', messages: 50_000, rounds: 3, only: null })
    expect(readArguments(['order', '--messages', '10', '--rounds', '1', '--only', 'drain'])).toEqual({
      kind: 'order',
      messages: 10,
      rounds: 1,
      only: 'drain',
    })
  })

  test('of a comparison say what is compared', () => {
    expect(readArguments(['bench'])).toEqual({
      kind: 'bench',
      isQuick: false,
      isJson: false,
      only: null,
      peers: null,
      rounds: 5,
      share: 1,
      trials: [],
      page: null,
      database: null,
    })
    const some = ['--quick', '--json', '--only', 'drain-noop, timers', '--peers', 'postbox']
    const others = ['--share', '0.5', '--try', 'pg-boss={"work":{"batchSize":5}}', '--page', 'here']
    const given = ['bench', ...some, ...others, '--database', 'postgres://here/empty']
    expect(readArguments(given)).toMatchObject({
      isQuick: true,
      isJson: true,
      only: ['drain-noop', 'timers'],
      peers: ['postbox'],
      rounds: 5,
      share: 0.5,
      trials: [{ contender: 'pg-boss', settings: { work: { batchSize: 5 } } }],
      page: 'here',
      database: 'postgres://here/empty',
    })
  })

  test.each([
    [['bench', '--only', 'drain'], 'expected scenarios for --only, got `drain`'],
    [['bench', '--peers', 'postbox,kafka'], 'expected contenders for --peers, got `kafka`'],
    [['bench', '--share', '2'], 'expected a number above 0 and up to 1 for --share'],
    [['bench', '--share', 'all'], 'expected a number above 0 and up to 1 for --share'],
    [['bench', '--try', 'kafka={}'], 'expected a contender and settings as JSON for --try, got `kafka={}`'],
    [['bench', '--try', 'pg-boss={'], 'expected a contender and settings as JSON for --try'],
    [['bench', '--try', 'pg-boss=1'], 'expected a contender and settings as JSON for --try'],
    [['bench', '--rounds', 'many'], 'expected a whole number for --rounds'],
    [['counters', '--rounds', '3'], "Unknown option '--rounds'"],
    [['counters', 'counters'], "Unexpected argument 'counters'"],
    [['counters', '--json'], "Option '--json <value>' argument missing"],
    [['order', '--rounds', '0'], 'expected a whole number for --rounds'],
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
