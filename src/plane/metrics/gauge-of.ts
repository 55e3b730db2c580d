import { Gauge, type Registry } from 'prom-client'

/** A figure that is looked at when it is asked for. */
export const gaugeOf =
  (registers: Registry[]) =>
  (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value())
      },
    })
  }
