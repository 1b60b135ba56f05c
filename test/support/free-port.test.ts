import { expect, test } from 'vitest'
import { freePort, takePorts } from './free-port.ts'

test('processes whose numbers are alike have different ports, and none gives a port that another one has', async () => {
  const ports = [await takePorts(process.pid), await takePorts(process.pid), await freePort(), await freePort()]
  expect(new Set(ports).size).toBe(ports.length)
  expect(Math.floor(ports[0]! / 100)).not.toBe(Math.floor(ports[1]! / 100))
})
