import { Consumption } from './consumption.ts'
import type { Driver } from './driver.ts'
import { pingPong, runTimers } from './latency.ts'
import { measureLoad } from './load.ts'
import type { Application, Order, Report } from './protocol.ts'
import { publishEach, publishMany, scheduleMany } from './publish.ts'

interface Scene {
  readonly order: Order
  readonly application: Application
  readonly tell: (report: Report) => void
}

let consumption: Consumption | undefined

export async function perform(driver: Driver, { order, application, tell }: Scene): Promise<unknown> {
  switch (order.name) {
    case 'setup':
      return driver.setup().then(() => null)
    case 'publishMany':
      return publishMany(driver, order.input)
    case 'scheduleMany':
      return scheduleMany(driver, order.input).then(() => null)
    case 'publishEach':
      return publishEach(driver, application, order.input)
    case 'openConsumer':
      return driver.openConsumer().then(() => null)
    case 'consume':
      consumption = new Consumption(order.input, (handled) => tell({ kind: 'progress', handled }))
      return driver.consume(consumption.handler).then(() => null)
    case 'stop':
      await driver[Symbol.asyncDispose]()
      return consumption?.end() ?? null
    case 'pingPong':
      return pingPong(driver, application, order.input)
    case 'timers':
      return runTimers(driver, order.input)
    case 'load':
      return measureLoad(driver, order.input)
  }
}
