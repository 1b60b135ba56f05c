/** What a protocol is to the server that speaks it. */
import type { FastifyPluginAsync } from 'fastify'
import type { InnerConnections } from '../../http/local/inner-connections.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MakeBody } from '../../webhooks/dispatcher.ts'
import type { GatewayDeps } from './gateway-deps.ts'

type ProtocolDeps = GatewayDeps & {
  readonly metrics: Metrics
  readonly innerConnections: InnerConnections
  /** The origins of pages that may send requests. */
  readonly corsOrigins: readonly string[]
  /** Other instances use the same conversations. */
  readonly hasPeers: boolean
  readonly version: string
  /** The URL of the server, if the operator has set one. */
  readonly publicUrl: string | undefined
  /** Resolves when the conversations are known. */
  readonly loaded: Promise<void>
}

export type Protocol = {
  readonly routes: FastifyPluginAsync<ProtocolDeps>
  /** Makes what its callbacks deliver; without it, they deliver events. */
  readonly deliveryBody?: MakeBody
}
