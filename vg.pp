// Made by `ppcc synthesize`. At M = 48: Makespan 4626.807662994, bound 4232.873729088, gap 9.31 %.
// The bound: rank 0 begins at 0 and works for 4232.873729088.
// Proven for every M from 46 on, on stream.
schedule found(M: int >= 46) {
  ranks 8;
  microbatches M;
  placement v;
  model {
    output stage s in 0 .. 15 = x[1, 2048, 12288] bf16;
    input stage s in 1 .. 16 = x[1, 2048, 12288] bf16;
    layout "Etttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|tttttt|ttttttL";
    cost F stage s = s < 15 ? 14.302241094 : 15.092715354;
    cost I stage s = s < 15 ? 14.688788154 : 15.479262414;
    cost W stage s = s < 15 ? 13.91569404 : 14.7061683;
    memory F = 641728512;
    memory B = -641728512;
    memory W = -641728512;
    static stage s = s < 1 ? 25850686464 : s < 15 ? 24461180928 : 25850686464;
  }

  on rank r {
    if r == 0 {
      phase warmup {
        repeat 8 { F(0); }
        F(1);
      }
      phase steady {
        I(1); F(1); I(1); repeat 2 { W(1); }
        repeat 2 { F(1); I(1); W(1); }
        F(1); I(0); F(0); I(1); W(0); I(0); W(1); F(0); F(1);
        repeat 6 { I(1); W(0); W(1); F(1); I(0); F(0); }
        I(1); W(0); F(1); I(0); W(1); F(0); I(1); W(0); W(1); F(1); I(0); F(0);
        repeat 2 {
          I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1);
          F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0);
          I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); F(1); I(0); W(1); F(0); I(1); W(0); I(0);
          W(1); F(0); F(1);
        }
        I(1); W(0); I(0); W(1); F(0); F(1); I(1); W(0); F(1); I(0); W(1); F(0);
        repeat 2 { I(1); W(0); I(0); W(1); F(0); F(1); }
        I(1); W(0); F(1); I(1); W(1); repeat 3 { I(0); W(1); F(0); F(1); I(1); W(0); }
        I(0); W(1); F(0); I(0); W(0); F(0); F(1); I(0); W(0); F(0); I(1); W(0); F(1); I(0); W(1);
        F(0); I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(1);
        repeat M - 46 { W(1); F(1); I(0); F(0); I(1); W(0); }
        repeat 2 { W(1); F(1); I(0); I(1); W(0); }
        W(1); F(1); I(1); I(0); W(1); F(1);
      }
      phase cooldown {
        I(1); W(0); I(0); W(1); I(0); repeat 2 { W(0); }
        repeat 3 { I(0); W(0); }
      }
    }
    else if r == 1 {
      phase warmup {
        repeat 8 { F(0); }
        repeat 2 { F(1); }
      }
      phase steady {
        repeat 2 { I(1); W(1); }
        F(1); I(1); F(1); W(1); I(1); F(1); I(0); W(1); W(0); F(0); I(0); I(1); W(0); F(1); F(0);
        W(1); repeat 6 { I(1); F(1); I(0); W(1); W(0); F(0); }
        F(1); I(0); I(1); W(0); W(1); repeat 7 { F(0); I(1); F(1); I(0); W(1); W(0); }
        F(0); F(1); I(0); I(1); W(0); W(1); F(0); I(0); I(1); W(0); F(1); F(0); W(1);
        repeat 6 { I(1); F(1); I(0); W(1); W(0); F(0); }
        repeat 2 {
          F(1); I(0); I(1); W(0); W(1); F(0); I(0); I(1); W(0); F(1); F(0); I(0); W(1); I(1); W(0);
          F(1); F(0); W(1);
        }
        F(1); I(1); I(0); W(1); repeat 2 { I(1); W(0); W(1); F(1); F(0); I(0); }
        I(1); W(0); F(1); W(1); F(0); I(0); I(1); W(0); I(0); W(1); F(1); F(0); I(0); W(0); F(0);
        F(1); F(0); I(0); W(0); I(1); W(0); W(1); F(0); I(1); F(1); I(0); W(1); W(0); F(0); I(1);
        F(1); W(1); repeat M - 46 { I(1); F(1); I(0); W(1); W(0); F(0); }
        I(1); F(1); I(0); W(1); W(0); I(1); W(1); F(1); I(0); W(0); I(1); F(1); W(1); I(0); I(1);
        W(0); F(1);
      }
      phase cooldown {
        W(1); I(0); I(1); W(0); I(0); W(1); repeat 3 { W(0); I(0); }
        W(0);
      }
    }
    else if r == 2 {
      phase warmup {
        repeat 7 { F(0); }
        repeat 2 { F(1); }
      }
      phase steady {
        I(1); W(1); I(1); F(1); W(1); F(1); I(1); W(1); F(1); I(0); F(0); I(1); W(0); I(0); W(1);
        F(0); F(1); repeat 7 { I(1); W(0); W(1); F(1); I(0); F(0); }
        W(0); I(1); W(1); F(1); I(0); F(0);
        repeat 2 {
          I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1);
          F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0);
          I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0); W(0); I(1); I(0);
          W(1); F(0); F(1);
        }
        I(1); W(0); I(0); W(1); F(0); F(1); I(1); W(0); W(1); F(1); I(0); F(0); W(0); I(1); W(1);
        I(0); F(0); F(1); I(1); W(0); I(0); W(1); F(0); F(1); I(1); W(0); W(1); F(1); I(0); F(0);
        I(1); W(0); W(1); I(1); F(1); I(0); W(1); F(0); W(0); I(1); F(1); I(0); W(1); F(0); F(1);
        I(1); W(0); I(0); W(1); F(0); I(0); W(0); F(1); I(1); W(0); I(0); W(1); F(0); F(1); F(0);
        I(0); W(0); F(0); W(0); I(1); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(1);
        repeat M - 45 { W(1); F(1); I(0); F(0); I(1); W(0); }
        W(1); F(1); I(0); I(1); W(0); W(1); F(1); I(1); I(0); W(1); W(0); F(1);
      }
      phase cooldown {
        I(1); I(0); W(1); W(0); I(0); I(1); W(0); W(1); repeat 3 { I(0); W(0); }
      }
    }
    else if r == 3 {
      phase warmup {
        repeat 7 { F(0); }
        repeat 2 { F(1); }
      }
      phase steady {
        I(1); F(1); I(1); repeat 2 { W(1); }
        F(1); I(1); F(1); I(0); W(1); W(0); F(0); I(0); I(1); W(0); F(1); F(0); W(1);
        repeat 15 { I(1); F(1); I(0); W(1); W(0); F(0); }
        I(0); I(1); W(0); F(1); F(0); W(1); repeat 7 { I(1); F(1); I(0); W(1); W(0); F(0); }
        repeat 2 {
          I(0); I(1); W(0); F(1); F(0); I(0); W(1); I(1); W(0); F(1); F(0); W(1); I(1); F(1); I(0);
          W(1); W(0); F(0);
        }
        I(1); F(1); I(0); W(1); I(1); W(0); W(1); F(0); F(1); I(0); I(1); W(0); W(1); F(1); F(0);
        I(0); I(1); W(0); I(0); W(1); F(0); F(1); W(0); I(0); I(1); W(0); F(1); F(0); I(0); W(1);
        F(0); W(0); F(0); I(1); F(1); I(0); W(1); W(0); F(0); I(1); F(1); W(1);
        repeat M - 45 { I(1); F(1); I(0); W(1); W(0); F(0); }
        I(1); F(1); I(0); W(1); W(0); I(1); F(1); W(1); I(0); I(1); W(0); F(1);
      }
      phase cooldown {
        W(1); I(0); I(1); W(0); I(0); W(1); W(0); I(1); I(0); W(1); repeat 2 { W(0); I(0); }
        W(0);
      }
    }
    else if r == 4 {
      phase warmup {
        repeat 6 { F(0); }
        repeat 3 { F(1); }
      }
      phase steady {
        I(1); W(1); I(1); F(1); W(1); F(1); I(0); F(0); I(1); W(0); I(0); W(1); F(0); F(1);
        repeat 16 { I(1); W(0); W(1); F(1); I(0); F(0); }
        W(0); I(1); repeat 7 { W(1); F(1); I(0); F(0); I(1); W(0); }
        repeat 2 {
          W(1); F(1); I(0); F(0); W(0); I(1); W(1); I(0); F(0); W(0); F(1); I(1); W(1); F(1); I(0);
          F(0); I(1); W(0);
        }
        W(1); F(1); I(0); F(0); I(1); W(0); W(1); I(1); F(1); I(0); W(1); F(0); W(0); I(1); F(1);
        I(0); W(1); F(0); I(0); W(0); I(1); W(0); F(1); F(0); I(0); W(1); F(1); I(1); W(0); I(0);
        W(1); F(0); F(1); F(0); W(0); I(0); F(0); I(1); W(0); W(1); F(1); I(1);
        repeat M - 44 { W(1); F(1); I(0); F(0); I(1); W(0); }
        W(1); F(1); I(1); I(0); W(1); W(0); F(1);
      }
      phase cooldown {
        I(1); I(0); W(1); W(0); repeat 2 { I(0); I(1); W(0); W(1); }
        repeat 2 { I(0); W(0); }
      }
    }
    else if r == 5 {
      phase warmup {
        repeat 6 { F(0); }
        repeat 3 { F(1); }
      }
      phase steady {
        I(1); F(1); I(1); repeat 2 { W(1); }
        F(1); I(0); W(0); F(0); I(0); I(1); W(0); F(1); F(0); W(1);
        repeat 24 { I(1); F(1); I(0); W(1); W(0); F(0); }
        repeat 2 {
          I(0); I(1); W(0); F(1); F(0); W(1); I(1); F(1); I(0); W(1); W(0); F(0); I(1); F(1); I(0);
          W(1); W(0); F(0);
        }
        I(1); F(1); I(0); W(1); I(1); W(0); W(1); F(0); F(1); I(0);
        repeat 2 { I(1); W(0); I(0); W(1); F(0); F(1); }
        W(0); I(0); I(1); W(0); F(1); F(0); W(1); F(0); I(0); W(0); F(0); I(1); F(1); W(1);
        repeat M - 44 { I(1); F(1); I(0); W(1); W(0); F(0); }
        I(1); F(1); I(0); W(1); I(1); W(0); F(1);
      }
      phase cooldown {
        W(1); I(0); I(1); W(0); repeat 2 { I(0); W(1); W(0); I(1); }
        I(0); W(1); W(0); I(0); W(0);
      }
    }
    else if r == 6 {
      phase warmup {
        repeat 5 { F(0); }
        repeat 4 { F(1); }
      }
      phase steady {
        I(1); W(1); I(1); F(1); I(0); W(1); F(0); I(0); W(0); F(0); F(1);
        repeat 25 { I(1); W(0); W(1); F(1); I(0); F(0); }
        repeat 2 {
          W(0); I(1); W(1); F(1); I(0); F(0); I(1); W(0); W(1); F(1); I(0); F(0); I(1); W(0); W(1);
          F(1); I(0); F(0);
        }
        I(1); W(0); W(1); I(1); F(1); I(0); W(1); F(0); I(0); W(0);
        repeat 2 { I(1); W(0); F(1); F(0); I(0); W(1); }
        F(1); I(1); W(0); F(0); I(0); W(1); F(0); F(1); W(0); I(1);
        repeat M - 43 { W(1); F(1); I(0); F(0); I(1); W(0); }
        W(1); F(1);
      }
      phase cooldown {
        I(1); I(0); W(1); W(0); repeat 3 { I(0); I(1); W(0); W(1); }
        I(0); W(0);
      }
    }
    else {
      phase warmup {
        repeat 5 { F(0); }
        repeat 4 { F(1); }
      }
      phase steady {
        I(1); F(1); I(0); W(1); I(1); W(0); I(0); W(1); F(0); F(1); F(0); W(0);
        repeat 31 { I(1); F(1); I(0); W(1); W(0); F(0); }
        I(1); F(1); I(0); W(1); repeat 3 { I(1); W(0); I(0); W(1); F(0); F(1); }
        W(0); I(1); I(0); W(1); F(0); F(1); repeat M - 43 { W(0); F(0); I(1); F(1); I(0); W(1); }
        W(0); F(0); I(1); F(1);
      }
      phase cooldown {
        I(0); W(1); I(1); W(0); repeat 3 { I(0); W(1); W(0); I(1); }
        I(0); W(1); W(0);
      }
    }
  }
}
