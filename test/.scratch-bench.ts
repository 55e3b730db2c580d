import { openStore, makeSigner, someNode, someToken, someCertificate, note, read } from '/work/main/test/store-harness.ts'
import * as fs from 'node:fs'
const folder = process.argv[2] ?? fs.mkdtempSync('/tmp/scratch-store/b-')
const s = await openStore(folder, makeSigner())
const der = 'A'.repeat(1100)
const N = 20000, G = 50
const mk = (i: number) => someNode('gpu-' + i, { hardware: { macs: ['02:00:00:'+(i>>16).toString(16).padStart(2,"0")+':' + ((i >> 8)&255).toString(16).padStart(2, '0') + ':' + (i & 255).toString(16).padStart(2, '0')], bmcSerial: 'S' + i } })
for (let i = 0; i < N; i += 500) {
  await Promise.all(Array.from({ length: 500 }, (_, j) => s.commit({ reads: [read('node', 'gpu-' + (i + j), 0), read('token','hash-of-t' + (i+j),0)], writes: [{ put: 'node', value: mk(i + j) }, {put:'token', value: someToken('t'+(i+j))}], entries: [note('gpu-' + (i + j))] })))
}
import inspector from 'node:inspector/promises'; const ses=new inspector.Session(); ses.connect(); if(process.env.PROF){await ses.post('Profiler.enable');await ses.post('Profiler.setSamplingInterval',{interval:200});await ses.post('Profiler.start')}
const cpu0 = process.cpuUsage(), t0 = performance.now()
for (let i = 0; i < N; i += G) {
  const r = await Promise.all(Array.from({ length: G }, (_, j) => {
    const k = i + j, id = 'gpu-' + k
    return s.commit({
      reads: [read('node', id, 1), read('token', 'hash-of-t' + k, 1), read('key-ban', 'spki' + k, 0)],
      writes: [
        { put: 'node', value: { ...mk(k), epoch: 1, membership: { kind: 'enrolled', sinceMs: 1, slots: { current: { issuer: 'a'.repeat(40), serial: 'b'.repeat(32), spki: 'c'.repeat(64), sha256: 'd'.repeat(64), issuedAtMs: 1, notAfterMs: 2 }, pending: null, retired: null } } } },
        { put: 'token', value: { ...someToken('t' + k), state: { kind: 'used', spki: 'x', node: id, atMs: 1 } } },
        { put: 'certificate', value: someCertificate('b'.repeat(20) + ((k * 2654435761) >>> 0).toString(16).padStart(12,'0'), { der }) },
      ],
      entries: [{ ...note(id, 'host.enrolled'), body: { host_id: id, fingerprint: 'f'.repeat(64), method: 'token', overlay_ip: null, wg_public_key: null } }],
    })
  }))
  if (r.some((x) => x === 'lost-race')) throw new Error('lost')
}
const cpu = process.cpuUsage(cpu0), ms = performance.now() - t0
if(process.env.PROF){const {profile:p}=await ses.post('Profiler.stop');const m=new Map();const byId=new Map(p.nodes.map((n:any)=>[n.id,n]));p.samples.forEach((x:any,i:number)=>{const n=(byId.get(x) as any).callFrame;const k=n.functionName+' '+n.url.split('/').pop()+':'+n.lineNumber;m.set(k,(m.get(k)||0)+p.timeDeltas[i])});console.log([...m].sort((a:any,b:any)=>b[1]-a[1]).slice(0,26).map(([k,v]:any)=>(v/N).toFixed(1)+' µs '+k).join('\n'))}
console.log(`commits/s ${(N / ms * 1000).toFixed(0)}  CPU µs/commit ${((cpu.user + cpu.system) / N).toFixed(1)} user ${(cpu.user/N).toFixed(1)} sys ${(cpu.system/N).toFixed(1)}`)
{const {DatabaseSync}=await import('node:sqlite');const d=new DatabaseSync(folder+'/muster.db');console.log(d.prepare('pragma wal_checkpoint').get());d.close()}
const t1 = performance.now(); for (let i = 0; i < N; i++) await s.get('node', 'gpu-' + i); console.log('get µs', ((performance.now() - t1) / N * 1000).toFixed(2))
const t2 = performance.now(); const v = await s.journal.verify(); console.log(v.kind, 'verify ms', (performance.now() - t2).toFixed(0), v.entries)
await s.close(); fs.rmSync(folder, { recursive: true })
