import type pg from 'pg'
import { islandAddress, wrongAddress } from './addresses.ts'
import type { Paint } from './paint.ts'
import { thousands } from './paint.ts'
import { mostAttempts } from './ship.ts'

export interface Check {
  readonly title: string
  /** How many rows the check looked at, and how many of them are not as they should be. */
  readonly rows: number
  readonly wrong: number
}

/** Asks the tables, and nobody else, whether every message was delivered and none that was rolled back. */
export async function runChecks(pool: pg.Pool): Promise<readonly Check[]> {
  const checks: Check[] = []
  for (const [title, query] of Object.entries(queries)) {
    const { rows } = await pool.query<{ rows: number; wrong: number }>(query)
    checks.push({ title, ...rows[0]! })
  }
  return checks
}

const queries = {
  'every order has exactly one shipment': `
    select count(*)::int as rows, count(*) filter (where shipments <> 1)::int as wrong
      from (select count(s.message_id) as shipments
              from orders o
              left join shipments s on s.order_id = o.id
             group by o.id) as each_order`,

  'every shipment was announced by exactly one e-mail': `
    select count(*)::int as rows, count(*) filter (where emails <> shipments)::int as wrong
      from (select count(distinct s.message_id) as shipments, count(distinct e.message_id) as emails
              from shipments s
              full join (select * from emails_sent where about = 'shipment') as e using (order_id)
             group by order_id) as each_order`,

  'every order was confirmed by exactly one e-mail': `
    select count(*)::int as rows, count(*) filter (where emails <> 1)::int as wrong
      from (select count(e.message_id) as emails
              from orders o
              left join emails_sent e on e.order_id = o.id and e.about = 'order'
             group by o.id) as each_order`,

  'every coupon was e-mailed exactly once': `
    select count(*)::int as rows, count(*) filter (where emails <> 1)::int as wrong
      from (select count(e.message_id) as emails
              from coupons c
              left join emails_sent e on e.coupon_code = c.code
             group by c.code) as each_coupon`,

  'no declined order was shipped or e-mailed': `
    select count(*)::int as rows, count(delivered.order_id)::int as wrong
      from declined
      left join (select order_id from shipments union select order_id from emails_sent) as delivered
     using (order_id)`,

  'no coupon rolled back to its savepoint was e-mailed': `
    select count(*)::int as rows, count(emailed.code)::int as wrong
      from withdrawn_coupons
      left join (select distinct coupon_code as code from emails_sent) as emailed
     using (code)`,

  'nothing was delivered that was not ordered': `
    select count(*)::int as rows, count(*) filter (where o.id is null)::int as wrong
      from (select order_id from shipments union all select order_id from emails_sent) as delivered
      left join orders o on o.id = delivered.order_id`,

  'every parcel that was refused was shipped later': `
    select count(*)::int as rows, count(*) filter (where s.message_id is null)::int as wrong
      from refusals r
      left join shipments s on s.message_id = r.message_id and s.attempt > r.attempt`,

  'every wrong address was dead, then mended and shipped': `
    select count(*)::int as rows, count(*) filter (where s.message_id is null)::int as wrong
      from orders o
      left join corrections c on c.order_id = o.id
      left join shipments s on s.message_id = c.message_id and s.address = c.address
     where o.address = '${wrongAddress}'`,

  // A parcel that was refused until it was given up, and shipped under the same id at an earlier attempt, was replayed.
  'every parcel the storm held was dead, then replayed': `
    select count(*)::int as rows, count(*) filter (where s.message_id is null)::int as wrong
      from orders o
      left join stormbound b on b.order_id = o.id and b.attempt = ${mostAttempts}
      left join shipments s on s.message_id = b.message_id and s.attempt < b.attempt
     where o.address = '${islandAddress}'`,

  'every invoice not paid in time has one reminder': `
    select count(*)::int as rows, count(*) filter (where reminders <> 1)::int as wrong
      from (select count(e.message_id) as reminders
              from invoices i
              left join emails_sent e on e.order_id = i.order_id and e.about = 'reminder'
             where i.paid_in_time is not true
             group by i.order_id) as each_invoice`,

  'no invoice paid in time has a reminder': `
    select count(*)::int as rows, count(reminded.order_id)::int as wrong
      from invoices i
      left join (select distinct order_id from emails_sent where about = 'reminder') as reminded
     using (order_id)
     where i.paid_in_time`,

  'the outbox is empty, and so are the dead letters': `
    select count(*)::int as rows, count(*)::int as wrong
      from (select id from outbox union all select id from outbox_dead) as left_over`,
}

/** The table of checks, one line each. */
export function verdictLines(checks: readonly Check[], paint: Paint): string[] {
  const failed = checks.filter(({ wrong }) => wrong > 0)
  const summary =
    failed.length === 0
      ? paint('green', `All ${checks.length} checks hold.`)
      : paint('red', `${failed.length} of ${checks.length} checks failed.`)
  return [
    '',
    paint('dim', line(' ', ['The verdict, by SQL over the shop’s own tables', 'rows', 'wrong'])),
    ...checks.map((check) => checkLine(check, paint)),
    '',
    `  ${summary}`,
  ]
}

function checkLine({ title, rows, wrong }: Check, paint: Paint): string {
  const text = line(wrong === 0 ? '✓' : '✗', [title, thousands(rows), thousands(wrong)])
  return wrong === 0 ? text.replace('✓', paint('green', '✓')) : paint('red', text)
}

function line(mark: string, [title, rows, wrong]: readonly [string, string, string]): string {
  return `  ${mark} ${title.padEnd(54)}${rows.padStart(9)}${wrong.padStart(9)}`
}
