import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { failedChecks, isRow, lastRow, readOperation, readVerdict, rowsOf } from './shop-output.ts'
import { startShop } from './shop-process.ts'

// Each run has a folder and a server of its own: several go on at once.
describe.concurrent('a run', () => {
  test('ends by itself after --for, with a verdict over rows of every kind and exit code 0', async () => {
    await using shop = await startShop(['--for', '2s'])

    const { code, output } = await shop.ended

    const verdict = readVerdict(output)
    expect(code, output).toBe(0)
    expect(output).toContain('All 13 checks hold.')
    expect(verdict.map(({ mark }) => mark)).toEqual(Array(13).fill('✓'))
    expect(verdict.filter(({ rows }) => rows === 0).map(({ title }) => title)).toEqual([
      'the outbox is empty, and so are the dead letters',
    ])
  })

  test('shows its retries, dead letters and timers, and none of them is noise in the log', async () => {
    await using shop = await startShop(['--for', '1s'])

    const { output } = await shop.ended

    const row = lastRow(output)
    const held = rowsOf(output, 'every parcel the storm held was dead, then replayed') ?? 0
    const misaddressed = rowsOf(output, 'every wrong address was dead, then mended and shipped') ?? 0
    expect(row, output).toEqual({
      // What the storm held was tried again twice, and then dead.
      retried: (rowsOf(output, 'every parcel that was refused was shipped later') ?? 0) + 2 * held,
      waiting: 0,
      died: misaddressed + held,
      replayed: row.died,
      cancelled: rowsOf(output, 'no invoice paid in time has a reminder'),
      fired: rowsOf(output, 'every invoice not paid in time has one reminder'),
    })
    expect(Math.min(row.retried, row.died, row.cancelled, row.fired), output).toBeGreaterThan(0)
    expect(output).not.toContain('[postbox]')
  })

  test('ends with a replay by filter: a dry run, then for real, at a pace, by somebody, and no dead letter is left', async () => {
    await using shop = await startShop(['--for', '1s'])

    const { output } = await shop.ended

    const held = rowsOf(output, 'every parcel the storm held was dead, then replayed') ?? 0
    expect(held, output).toBeGreaterThan(0)
    expect(output).toContain(`A dry run finds what died of it: ${held} orders, retry_terminal.`)
    expect(output).toMatch(new RegExp(`^Replayed ${held} by filter: \\d+ a second are due\\.$`, 'm'))
    expect(readOperation(output)).toEqual({
      replayed: expect.stringMatching(new RegExp(`^${held} by filter, \\d+ a second; dead letters left: 0$`)),
      by: 'harbour-master@example.com',
      filter: expect.stringContaining('"search":"NoFerry"'),
      operation: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  test('however short shows every check something to look at', async () => {
    await using shop = await startShop(['--for=1ms'])

    const { code, output } = await shop.ended

    expect(code, output).toBe(0)
    expect(readVerdict(output).filter(({ rows }) => rows === 0)).toHaveLength(1)
  })

  test('writes no escape sequence and no line over 80 columns into a pipe', async () => {
    await using shop = await startShop(['--for', '1s'])

    const { output } = await shop.ended

    expect(output).not.toContain('\x1b')
    expect(output.split('\n').filter((line) => line.length > 80)).toEqual([])
  })
})

describe.concurrent('the verdict', () => {
  test('says no, and the exit code is 1, when a shipment is lost', async () => {
    await using shop = await startShop(['--for', '1s'], { SHOP_SABOTAGE: 'lose-shipment' })

    const { code, output } = await shop.ended

    expect(failedChecks(output)).toEqual([
      'every order has exactly one shipment',
      'every shipment was announced by exactly one e-mail',
    ])
    expect(output).toContain('2 of 13 checks failed.')
    expect(output).toMatch(/^Sabotaged by lose-shipment: shipments of kites vanish\.$/m)
    expect(code).toBe(1)
  })

  test('says no when messages are published beside the transaction', async () => {
    await using shop = await startShop(['--for', '1s'], { SHOP_SABOTAGE: 'dual-write' })

    const { code, output } = await shop.ended

    expect(failedChecks(output)).toEqual([
      'no declined order was shipped or e-mailed',
      'no coupon rolled back to its savepoint was e-mailed',
      'nothing was delivered that was not ordered',
      // Shipments of orders that never were: tried again until they were given up.
      'the outbox is empty, and so are the dead letters',
    ])
    expect(code).toBe(1)
  })

  test('says no when a payment does not cancel the reminder', async () => {
    await using shop = await startShop(['--for', '1s'], { SHOP_SABOTAGE: 'keep-timer' })

    const { code, output } = await shop.ended

    expect(failedChecks(output)).toEqual(['no invoice paid in time has a reminder'])
    expect(code).toBe(1)
  })
})

describe.concurrent('a signal', () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    test(`${signal} closes the shop: all is delivered, the verdict printed, the server and its data gone`, async () => {
      await using shop = await startShop(['--for', '1m'])
      await shop.lines.find(isRow)
      const serverPid = await shop.serverPid()

      shop.kill(signal)
      const { code, output } = await shop.ended

      expect(code, output).toBe(0)
      expect(output).toContain('The shop closes')
      expect(output).toContain('All 13 checks hold.')
      expect(isRunning(serverPid)).toBe(false)
      expect(await shop.dataDirectories()).toEqual([])
    })
  }
})

describe.concurrent('with DATABASE_URL', () => {
  test('the schema is dropped at the end', async () => {
    await using postgres = await startPostgres()
    await using shop = await startShop(['--for', '1s'], { DATABASE_URL: postgres.url })

    const { code, output } = await shop.ended

    expect(code, output).toBe(0)
    expect(output).toMatch(/^Using PostgreSQL \S+ of DATABASE_URL, in the schema postbox_shop_\w+\.$/m)
    expect(await shopSchemas(postgres.url)).toEqual([])
    expect(await shop.dataDirectories()).toEqual([])
  })

  test('a second signal skips the deliveries and the verdict, and still drops the schema', async () => {
    await using postgres = await startPostgres()
    await using shop = await startShop(['--for', '1m'], { DATABASE_URL: postgres.url })
    await shop.lines.find(isRow)
    const [schema] = await shopSchemas(postgres.url)
    const blocker = new pg.Client(postgres.url)
    await blocker.connect()
    await blocker.query(`begin; lock table ${schema}.shipments`)
    // Two more rows: orders were placed since, and none of them can be shipped.
    await shop.lines.take(shop.lines.all.length + 2)

    shop.kill('SIGINT')
    await shop.lines.find((line) => line.startsWith('The shop closes'))
    shop.kill('SIGTERM')
    await shop.lines.find((line) => line.startsWith('Ended in a hurry'))
    await blocker.query('commit')
    await blocker.end()
    const { code, output } = await shop.ended

    expect(code, output).toBe(130)
    expect(output).not.toContain('checks')
    expect(await shopSchemas(postgres.url)).toEqual([])
  })

  test('a server that cannot be reached is one sentence and exit code 1', async () => {
    await using shop = await startShop([], { DATABASE_URL: 'postgres://postgres@127.0.0.1:1/test' })

    const { code, output } = await shop.ended

    expect(output).toBe('The shop failed (on the server of DATABASE_URL): connect ECONNREFUSED 127.0.0.1:1')
    expect(code).toBe(1)
  })
})

describe.concurrent('arguments', () => {
  test.each([
    [['--fro', '10s'], /^Unknown option '--fro'\./],
    [['--for'], /^expected `--for` to be followed by a duration such as 500ms, 10s or 1m/],
    [['--for', '10'], /^expected `--for` to be a duration .*, got `10`\./],
    [['--for', '0s'], /got `0s`\./],
    [['--for=25000m'], /up to 24 hours, got `25000m`\./],
    [['now'], /^Unexpected argument 'now'\./],
  ])('%j is refused in a sentence, with exit code 2', async (args, sentence) => {
    await using shop = await startShop(args)

    const { code, output } = await shop.ended

    expect(output).toMatch(sentence)
    expect(output.split('\n')).toHaveLength(1)
    expect(code).toBe(2)
  })

  test.each(['bogus', 'dual-write '])('SHOP_SABOTAGE=%j is refused in the same way', async (name) => {
    await using shop = await startShop(['--for', '1s'], { SHOP_SABOTAGE: name })

    const { code, output } = await shop.ended

    const names = '`lose-shipment`, `dual-write`, `keep-timer`'
    const sentence = `expected \`SHOP_SABOTAGE\` to be one of ${names}, got \`${name}\`. \`--help\` explains.`
    expect(output).toBe(sentence)
    expect(code).toBe(2)
  })

  test('an empty SHOP_SABOTAGE is none', async () => {
    await using shop = await startShop(['--for', '1ms'], { SHOP_SABOTAGE: '' })

    const { code, output } = await shop.ended

    expect(output).not.toContain('Sabotaged')
    expect(code, output).toBe(0)
  })

  test('--help explains itself and exits with 0', async () => {
    await using shop = await startShop(['--help'])

    const { code, output } = await shop.ended

    expect(output).toContain('npm run demo -- --for 10s')
    for (const name of ['SHOP_SABOTAGE', 'lose-shipment', 'dual-write', 'keep-timer'])
      expect(output).toContain(name)
    expect(code).toBe(0)
  })
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function shopSchemas(url: string): Promise<string[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(
    "select nspname from pg_namespace where nspname like 'postbox\\_shop\\_%'",
  )
  await client.end()
  return rows.map(({ nspname }) => nspname)
}
