/** The files that deploy several instances: what of them can be checked without starting anything. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import openapi from '../../openapi/openapi.json' with { type: 'json' }
import { VARIABLES } from '../../src/config/variables.ts'
import { ClusterMetrics } from '../../src/telemetry/cluster-metrics.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFile(join(ROOT, path), 'utf8')
const PLACE = 'examples/deploy/cluster'
const isSetting = (name: string) => Object.keys(VARIABLES).includes(name.replace(/_FILE$/, ''))
const isRoute = (path: string) => Object.keys(openapi.paths).includes(path)
const drain = Number(VARIABLES.OPENHANDS_DRAIN_SECONDS.default)
const port = Number(VARIABLES.OPENHANDS_SERVER_PORT.default)
const image = ((parse(await read('examples/deploy/compose.yaml')) as Compose).services['agent-server'] as Service).image

describe('the compose file', async () => {
  const { services, secrets, volumes, networks } = parse(await read(`${PLACE}/compose.yaml`), {
    merge: true,
  }) as Compose
  const instances = Object.entries(services).filter(([name]) => name.startsWith('agent-server'))

  test('starts instances of the image with settings, volumes, secrets and networks that exist', () => {
    expect(instances.length).toBeGreaterThan(1)
    for (const [name, service] of instances) {
      expect(service.image).toBe(image)
      expect(Object.keys(service.environment).filter((each) => !isSetting(each))).toEqual([])
      const listened = service.environment['OPENHANDS_CLUSTER_LISTEN']!.split(':').at(-1)
      expect(service.environment['OPENHANDS_ADVERTISE_URL']).toBe(`http://${name}:${listened}`)
      expect(service.volumes).toContain(`shared:${service.environment['OPENHANDS_SHARED_DIR']}`)
      expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThan(drain + 10)
      expect(Object.keys(volumes)).toEqual(expect.arrayContaining(service.volumes.map((each) => each.split(':')[0])))
      expect(Object.keys(networks)).toEqual(expect.arrayContaining([...service.networks]))
      expect(Object.keys(secrets)).toEqual(expect.arrayContaining([...service.secrets]))
    }
    // Each has its own data directory.
    expect(
      new Set(
        instances.map(
          ([
            ,
            {
              volumes: [data],
            },
          ]) => data,
        ),
      ).size,
    ).toBe(instances.length)
    expect(instances[0]![1].environment['OPENHANDS_DATABASE_URL']).toContain('@database:5432/')
  })

  test('has a proxy that reaches all instances, and asks a route whether they are ready', async () => {
    const caddyfile = await read(`${PLACE}/Caddyfile`)
    expect(caddyfile).toContain(`reverse_proxy ${instances.map(([name]) => `${name}:${port}`).join(' ')} {`)
    expect(isRoute(/health_uri (\S+)/.exec(caddyfile)![1]!)).toBe(true)
    const [, listened] = /^:(\d+) \{$/m.exec(caddyfile)!
    expect(services['proxy']!.ports[0]!.split(':').at(-1)).toBe(listened)
    expect(services['proxy']!.networks).not.toContain('instances')
  })
})

describe('the Kubernetes manifests', async () => {
  const documents = parseAllDocuments(await read(`${PLACE}/kubernetes.yaml`))
  const all = documents.map((document) => document.toJS() as Manifest)
  const specOf = (kind: string) => all.find((each) => each.kind === kind)!.spec
  const { template, selector } = specOf('Deployment')
  const { containers, volumes, terminationGracePeriodSeconds } = template.spec as PodSpec
  const [container] = containers

  test('are valid YAML of one application', () => {
    expect(documents.flatMap(({ errors }) => errors)).toEqual([])
    expect(selector.matchLabels).toEqual(template.metadata.labels)
    for (const kind of ['PodDisruptionBudget', 'NetworkPolicy'])
      expect((specOf(kind).selector ?? specOf(kind).podSelector).matchLabels).toEqual(selector.matchLabels)
    expect(specOf('Service').selector).toEqual(selector.matchLabels)
  })

  test('set settings that exist, and mount what they name', () => {
    expect(container.image).toBe(image)
    const settings = new Map(container.env.map(({ name, value }) => [name, value]))
    expect([...settings.keys()].filter((name) => name !== 'POD_IP' && !isSetting(name))).toEqual([])
    const mounts = container.volumeMounts.map(({ mountPath }) => mountPath)
    expect(mounts).toEqual(['/data', settings.get('OPENHANDS_SHARED_DIR')])
    expect(volumes.map(({ name }) => name)).toEqual(container.volumeMounts.map(({ name }) => name))
    expect(volumes[1]!.persistentVolumeClaim!.claimName).toBe(
      all.find(({ kind }) => kind === 'PersistentVolumeClaim')!.metadata.name,
    )
  })

  test('have ports and probes of the server, and time for the hand-over', () => {
    const { env, ports, startupProbe, livenessProbe, readinessProbe, lifecycle } = container
    const byName = new Map(ports.map(({ name, containerPort }) => [name, containerPort]))
    const listened = env
      .find(({ name }) => name === 'OPENHANDS_CLUSTER_LISTEN')!
      .value!.split(':')
      .at(-1)
    expect([byName.get('http'), byName.get('instances')]).toEqual([port, Number(listened)])
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
      expect(isRoute(httpGet.path)).toBe(true)
      expect(byName.has(httpGet.port)).toBe(true)
    }
    expect([livenessProbe.httpGet.path, readinessProbe.httpGet.path]).toEqual(['/alive', '/ready'])
    const pause = Number(lifecycle.preStop.exec.command[1])
    expect(terminationGracePeriodSeconds).toBeGreaterThan(pause + drain + 10)
    expect(specOf('Service').ports[0].targetPort).toBe('http')
    const open = specOf('NetworkPolicy').ingress.filter((rule: { from?: unknown }) => rule.from === undefined)
    expect(open).toEqual([{ ports: [{ port: 'http' }] }])
  })

  test('scale by a metric that the server has', () => {
    const metrics = new Metrics()
    metrics.cluster = new ClusterMetrics()
    const [{ pods }] = specOf('HorizontalPodAutoscaler').metrics
    expect(metrics.instruments.map(({ name }) => name)).toContain(pods.metric.name)
  })
})

type Service = {
  readonly image: string
  readonly environment: Readonly<Record<string, string>>
  readonly volumes: readonly string[]
  readonly ports: readonly string[]
  readonly secrets: readonly string[]
  readonly networks: readonly string[]
  readonly stop_grace_period: string
}
type Compose = Readonly<Record<'secrets' | 'volumes' | 'networks', Readonly<Record<string, unknown>>>> & {
  readonly services: Readonly<Record<string, Service>>
}
type Probe = { readonly httpGet: { readonly path: string; readonly port: string } }
type Container = Readonly<Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', Probe>> & {
  readonly image: string
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
}
type PodSpec = {
  readonly containers: readonly [Container]
  readonly volumes: readonly {
    readonly name: string
    readonly persistentVolumeClaim?: { readonly claimName: string }
  }[]
  readonly terminationGracePeriodSeconds: number
}
// eslint-disable-next-line typescript/no-explicit-any
type Manifest = { readonly kind: string; readonly metadata: { readonly name: string }; readonly spec: any }
