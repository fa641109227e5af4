//! The designated experiment: proves pairs of terms equal, with the proof, and simplifies terms.
//!
//! Lines of challenge.txt are `prove TAB term TAB term` or `simplify TAB term`; the answers go to report.json.
use egg::{rewrite as rw, *};
use std::{fs, time::Duration};

define_language! {
    enum Ring {
        Num(i64),
        "+" = Add([Id; 2]),
        "*" = Mul([Id; 2]),
        "-" = Sub([Id; 2]),
        Symbol(Symbol),
    }
}

fn rules() -> Vec<Rewrite<Ring, ()>> {
    vec![
        rw!("comm-add"; "(+ ?a ?b)" => "(+ ?b ?a)"),
        rw!("comm-mul"; "(* ?a ?b)" => "(* ?b ?a)"),
        rw!("assoc-add"; "(+ ?a (+ ?b ?c))" => "(+ (+ ?a ?b) ?c)"),
        rw!("assoc-mul"; "(* ?a (* ?b ?c))" => "(* (* ?a ?b) ?c)"),
        rw!("distribute"; "(* ?a (+ ?b ?c))" => "(+ (* ?a ?b) (* ?a ?c))"),
        rw!("factor"; "(+ (* ?a ?b) (* ?a ?c))" => "(* ?a (+ ?b ?c))"),
        rw!("add-zero"; "(+ ?a 0)" => "?a"),
        rw!("mul-one"; "(* ?a 1)" => "?a"),
        rw!("mul-zero"; "(* ?a 0)" => "0"),
        rw!("cancel"; "(- ?a ?a)" => "0"),
    ]
}

fn runner() -> Runner<Ring, ()> {
    Runner::default().with_iter_limit(20).with_node_limit(10_000).with_time_limit(Duration::from_secs(120))
}

fn prove(left: &RecExpr<Ring>, right: &RecExpr<Ring>) -> String {
    let stop = |runner: &mut Runner<Ring, ()>| {
        let equal = runner.egraph.find(runner.roots[0]) == runner.egraph.find(runner.roots[1]);
        if equal { Err("proved".to_string()) } else { Ok(()) }
    };
    let mut runner =
        runner().with_explanations_enabled().with_expr(left).with_expr(right).with_hook(stop).run(&rules());
    let steps = if runner.egraph.find(runner.roots[0]) == runner.egraph.find(runner.roots[1]) {
        runner.explain_equivalence(left, right).get_flat_strings()
    } else {
        vec![]
    };
    let quoted: Vec<String> = steps.iter().map(|step| format!("\"{}\"", step)).collect();
    format!("{{\"iterations\": {}, \"proof\": [{}]}}", runner.iterations.len(), quoted.join(", "))
}

fn simplify(term: &RecExpr<Ring>) -> String {
    let runner = runner().with_expr(term).run(&rules());
    let (_, best) = Extractor::new(&runner.egraph, AstSize).find_best(runner.roots[0]);
    let classes = runner.egraph.number_of_classes();
    format!("{{\"nodes\": {}, \"classes\": {}, \"term\": \"{}\"}}", runner.egraph.total_size(), classes, best)
}

fn main() {
    let (mut proofs, mut terms) = (vec![], vec![]);
    for line in fs::read_to_string("challenge.txt").unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["prove", left, right] => proofs.push(prove(&left.parse().unwrap(), &right.parse().unwrap())),
            ["simplify", term] => terms.push(simplify(&term.parse().unwrap())),
            _ => panic!("challenge.txt: {}", line),
        }
    }
    let report = format!("{{\"proofs\": [{}],\n\"simplified\": [{}]}}\n", proofs.join(",\n"), terms.join(",\n"));
    fs::write("report.json", report).unwrap();
}
